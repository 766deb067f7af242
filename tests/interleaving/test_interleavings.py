"""Every order of store calls in small worlds, and what would happen without one of the guard's conditions."""

import pytest

from tests.interleaving.explore import explore
from tests.interleaving.mutations import MUTATIONS
from tests.interleaving.world import Shape, World
from tests.interleaving.worlds import few_worlds


@pytest.mark.parametrize("shape", list(few_worlds()), ids=Shape.name)
def test_no_order_of_store_calls_breaks_a_promise(shape: Shape) -> None:
    found = explore(World(shape))
    assert found.broken is None, "\n".join((*found.path, str(found.broken)))
    assert found.is_complete
    assert found.states > 1000


@pytest.mark.parametrize("mutation", list(MUTATIONS), ids=lambda mutation: mutation.__name__)
def test_the_explorer_finds_out_each_mutation_of_the_guard(mutation: type[World]) -> None:
    found = explore(mutation(MUTATIONS[mutation]))
    assert found.broken is not None
    assert found.path


@pytest.mark.parametrize("shape", dict.fromkeys(MUTATIONS.values()), ids=Shape.name)
def test_the_worlds_that_tell_mutations_are_sound_without_them(shape: Shape) -> None:
    found = explore(World(shape))
    assert found.broken is None
    assert found.is_complete

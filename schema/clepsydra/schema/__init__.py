"""The tables of each backend, as numbered DDL files: migration n brings a schema from version n - 1 to version n."""

from importlib import resources


def migrations(backend: str) -> list[str]:
    """The texts of a backend's migrations, in order. Their number is the version of the schema.

    >>> len(migrations("sqlite")) >= 1
    True
    """
    folder = resources.files(__name__) / backend
    files = sorted(
        (file for file in folder.iterdir() if file.name[:4].isdigit()),
        key=lambda file: file.name,
    )
    return [file.read_text(encoding="utf-8") for file in files]

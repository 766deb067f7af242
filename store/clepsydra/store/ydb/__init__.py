"""The store on YDB, for installations that outgrow one machine."""

from clepsydra.store.ydb.store import YdbStore

__all__ = ["YdbStore"]

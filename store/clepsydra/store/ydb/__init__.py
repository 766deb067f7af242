"""The store on YDB, for those who outgrow one machine."""

from clepsydra.store.ydb.store import YdbStore

__all__ = ["YdbStore"]

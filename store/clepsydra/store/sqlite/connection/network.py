"""Network file systems are refused: processes on two machines cannot share the memory of a write-ahead log.

Their locks and syncs are not reliable either, so even one machine may lose what was acknowledged.
"""

import os
from collections.abc import Iterable, Mapping

from clepsydra.store.errors import Unusable

_MOUNTS = "/proc/self/mountinfo"

_NETWORK = {
    "afs": "AFS",
    "beegfs": "BeeGFS",
    "ceph": "CephFS",
    "cifs": "SMB",
    "coda": "Coda",
    "fuse.ceph": "CephFS",
    "fuse.glusterfs": "GlusterFS",
    "fuse.s3fs": "S3",
    "fuse.sshfs": "SSHFS",
    "gfs2": "GFS2",
    "glusterfs": "GlusterFS",
    "gpfs": "GPFS",
    "lustre": "Lustre",
    "ncpfs": "NCP",
    "nfs": "NFS",
    "nfs4": "NFS",
    "ocfs2": "OCFS2",
    "smb2": "SMB",
    "smb3": "SMB",
    "smbfs": "SMB",
}


def refuse_network(path: str) -> None:
    """Raise if the file is on a file system that other machines may mount as well. Only Linux says which it is."""
    if not os.path.exists(_MOUNTS):
        return
    with open(_MOUNTS, encoding="utf-8", errors="surrogateescape") as mounts:
        kind = file_system_of(os.path.realpath(path), mounts)
    if kind in _NETWORK:
        raise Unusable(
            f"the store {path} is on a network file system ({_NETWORK[kind]}), on which SQLite may lose what was "
            "acknowledged; name a file on a local disk, or use PostgreSQL or YDB"
        )


def file_system_of(path: str, mounts: Iterable[str]) -> str:
    """The kind of file system of an absolute path, by the lines of mountinfo: see proc_pid_mountinfo(5).

    >>> lines = ["1 0 8:1 / / rw - ext4 /dev/sda rw", "2 1 0:5 / /my\\\\040data rw shared:1 - nfs4 host:/x rw"]
    >>> [file_system_of(path, lines) for path in ("/my data/store.db", "/my", "/my data")]
    ['nfs4', 'ext4', 'nfs4']
    """
    kinds: Mapping[str, str] = {
        _unescaped(fields[4]): fields[fields.index("-") + 1] for fields in map(str.split, mounts)
    }
    while path not in kinds:
        parent = os.path.dirname(path)
        if parent == path:
            return ""
        path = parent
    return kinds[path]


def _unescaped(field: str) -> str:
    """
    >>> _unescaped("/a\\\\040b\\\\134c")
    '/a b\\\\c'
    """
    first, *rest = field.split("\\")
    return first + "".join(chr(int(part[:3], 8)) + part[3:] for part in rest)

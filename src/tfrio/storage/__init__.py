"""Bytes from and to wherever they live: local files, file objects, fsspec and object-store URLs.

Reading asks for little: fill this buffer, give these bytes. Writing is atomic: bytes go to a
temporary name in the same folder and are renamed once complete, so that nothing half-written
bears a final name.
"""

from tfrio.storage.closing import Closing
from tfrio.storage.forks import FORKED, at_fork
from tfrio.storage.listing import (
    Entry,
    is_folder,
    is_regular,
    is_stream,
    list_folder,
    list_glob,
    refuse_existing,
    refuse_stream,
    size_of,
)
from tfrio.storage.reading import (
    BinaryReader,
    Source,
    local_path,
    name_of,
    named,
    open_read,
    read_full,
)
from tfrio.storage.remote import is_remote, is_web_page
from tfrio.storage.writing import (
    atomic_write,
    is_temporary,
    open_beside,
    open_write,
    publish,
    remove,
    temporary_beside,
)

__all__ = [
    "FORKED",
    "BinaryReader",
    "Closing",
    "Entry",
    "Source",
    "at_fork",
    "atomic_write",
    "is_folder",
    "is_regular",
    "is_remote",
    "is_stream",
    "is_temporary",
    "is_web_page",
    "list_folder",
    "list_glob",
    "local_path",
    "name_of",
    "named",
    "open_beside",
    "open_read",
    "open_write",
    "publish",
    "read_full",
    "refuse_existing",
    "refuse_stream",
    "remove",
    "size_of",
    "temporary_beside",
]

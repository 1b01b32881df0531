#!/usr/bin/env python3
"""A reader of the disk format, written from docs/format.md alone.

usage: read_store.py [--packs] STORE

Prints datasets, branches, transactions and the files of each branch's view,
one a line, with the XXH3-128 of each file's bytes; with --packs, the packs
that records name. It needs the programs
xxhsum and zstd, and uses no code of this project. Numbers in brackets are the
chapters of docs/format.md.
"""

import os
import re
import struct
import subprocess
import sys


class Refused(Exception):
    """The store is not one that this reader may read."""


def refuse(word, why):
    raise Refused(f"{word}: {why}")


def run(data, *command):
    return subprocess.run(command, input=data, stdout=subprocess.PIPE,
                          check=True).stdout


def hash64(data):
    """XXH3, 64 bits, as a number [1]."""
    return int(run(data, "xxhsum", "-H3").split()[-1], 16)


def hash128(data):
    """XXH3, 128 bits, in canonical form [1]."""
    return bytes.fromhex(run(data, "xxhsum", "-H2").split()[0].decode())


def expand(data, size):
    """Exactly one zstd frame of a known size [9.1]."""
    out = run(data, "zstd", "-d", "-c", "-q")
    if len(out) != size:
        refuse("damaged-frame", "a frame expands to another size")
    return out


class Cursor:
    """Fields one after the other; reading past the end refuses."""

    def __init__(self, data, word="bad-fact"):
        self.data = data
        self.at = 0
        self.word = word

    def left(self):
        return len(self.data) - self.at

    def check(self, holds, why="it does not parse"):
        if not holds:
            refuse(self.word, why)

    def bytes(self, size):
        self.check(size <= self.left())
        self.at += size
        return self.data[self.at - size:self.at]

    def u8(self):
        return self.bytes(1)[0]

    def flag(self):
        v = self.u8()
        self.check(v <= 1)
        return v == 1

    def u32(self):
        return struct.unpack("<I", self.bytes(4))[0]

    def u64(self):
        return struct.unpack("<Q", self.bytes(8))[0]

    def varint(self):
        v = 0
        for shift in range(0, 70, 7):
            byte = self.u8()
            self.check(not (shift == 63 and byte > 1))
            self.check(not (shift and byte == 0))
            v |= (byte & 0x7f) << shift
            if byte < 0x80:
                return v
        return self.check(False)

    def zigzag(self):
        v = self.varint()
        return -(v + 1) // 2 if v & 1 else v // 2

    def string(self):
        return self.bytes(self.varint())

    def end(self):
        self.check(self.left() == 0, "bytes behind its end")


# ---- the format file [4] and the log [6], [15.1] ----

def read_format(store):
    try:
        with open(os.path.join(store, "format"), "rb") as f:
            b = f.read(4097)
    except FileNotFoundError:
        refuse("not-a-store", store)
    if len(b) < 12 or b[:8] != b"INCRSTOR":
        refuse("not-a-store", store)
    version = struct.unpack("<I", b[8:12])[0]
    if version > 1:
        refuse("newer-format", f"version {version}")
    if (len(b) != 128 or version == 0 or any(b[12:16]) or any(b[64:120]) or
            struct.unpack("<Q", b[120:])[0] != hash64(b[:120])):
        refuse("damaged-format", store)
    incompatible = struct.unpack("<Q", b[16:24])[0]
    if incompatible:
        refuse("newer-format", f"features {incompatible:x}")
    return b[40:56]


class Record:
    def __init__(self, data, off, position, tag):
        """Refused as None in whole_record() unless it is whole [6.2]."""
        (self.magic, self.type, self.flags, self.size, self.version,
         self.sequence, self.position, self.durable_to, self.tag,
         payload_hash, header_hash) = struct.unpack_from("<4sHHII6Q", data, off)
        self.is_whole = False
        self.is_newer = False
        if self.magic != b"INCR" or header_hash != hash64(data[off:off + 56]):
            return
        if self.version != 1 or self.flags & 0xff:
            self.is_newer = True
            return
        self.span = 64 + (self.size + 7) // 8 * 8
        if (self.size > 64 << 20 or self.durable_to > self.position or
                self.sequence == 0 or self.position != position or
                self.tag != tag or off + self.span > len(data)):
            return
        self.payload = data[off + 64:off + 64 + self.size]
        if (any(data[off + 64 + self.size:off + self.span]) or
                payload_hash != hash64(self.payload)):
            return
        self.is_whole = True


def record_at(data, off, base, tag):
    if off + 64 > len(data) or data[off:off + 4] != b"INCR":
        return None
    r = Record(data, off, base + off, tag)
    return r if r.is_whole or r.is_newer else None


class Log:
    def __init__(self, store, uuid):
        self.uuid = uuid
        self.tag = hash64(uuid)
        self.segments = {}
        self.first_sequence = {}
        directory = os.path.join(store, "log")
        names = sorted(n for n in os.listdir(directory)
                       if re.fullmatch("[0-9a-f]{16}\\.log", n))
        for i, name in enumerate(names):
            with open(os.path.join(directory, name), "rb") as f:
                self.add(int(name[:16], 16), f.read(), i + 1 == len(names))
        self.newest = int(names[-1][:16], 16) if names else 0
        if 0 not in self.segments:
            refuse("corrupt-log", "the first segment is missing")

    def add(self, base, data, is_last):
        header = data[:64]
        is_whole = len(header) == 64 and header[:8] == b"INCRLOG1" and \
            struct.unpack("<Q", header[56:])[0] == hash64(header[:56])
        if is_whole and struct.unpack("<I", header[8:12])[0] != 1:
            refuse("newer-format", f"segment {base:x}")
        if is_whole:
            is_whole = (not any(header[12:16]) and header[16:32] == self.uuid
                        and struct.unpack("<Q", header[32:40])[0] == base and
                        not any(header[48:56]))
        if not is_whole:
            if is_last and not self.find_whole(data, 64, base, 0):
                return  # a leftover of a crash
            refuse("corrupt-log", f"header of segment {base:x}")
        self.segments[base] = data
        self.first_sequence[base] = struct.unpack("<Q", header[40:48])[0]

    def find_whole(self, data, off, base, durable_min):
        for at in range(off, len(data) - 63, 8):
            r = record_at(data, at, base, self.tag)
            if r and r.is_whole and r.durable_to >= durable_min:
                return True
        return False

    def is_damage(self, base, at, known):
        """Was there something on disk where no whole record stands [15.1]?"""
        end = base + at
        return self.newest > end or known > end or \
            self.find_whole(self.segments[base], at + 8, base, end + 1)

    def hole(self, position):
        """Where to go on, as a later record says, or None [7.6]."""
        best = None
        for base, data in sorted(self.segments.items()):
            for at in range(64, len(data) - 63, 8):
                if base + at <= position:
                    continue
                r = record_at(data, at, base, self.tag)
                if not r or not r.is_whole or r.type != 15:
                    continue
                for start, to, last in read_losses(Cursor(r.payload))[0]:
                    if start <= position < to <= r.position and \
                            (best is None or to > best[0]):
                        best = (to, last)
        return best

    def place(self, position):
        base = max(b for b in self.segments if b <= position)
        return base, (position - base) or 64

    def records(self):
        """All records, in order [15.1]."""
        base, at, sequence, known = 0, 64, 1, 0
        self.has_holes = False
        while True:
            data = self.segments[base]
            if at == len(data) and at != 64 and base + at in self.segments:
                base, at = base + at, 64
                continue
            r = record_at(data, at, base, self.tag)
            if not r:
                if not self.is_damage(base, at, known):
                    break
                # the end of a segment is the base of the next
                hole = self.hole(base + at) or (
                    self.hole(base) if at == 64 else None)
                if not hole:
                    refuse("corrupt-log", f"damage at {base + at}")
                base, at = self.place(hole[0])
                sequence = hole[1] + 1
                self.has_holes = True
                continue
            if r.is_newer:
                refuse("newer-format", f"record at {base + at}")
            if r.sequence != sequence or (
                    at == 64 and r.sequence != self.first_sequence[base]):
                refuse("corrupt-log", f"numbering breaks at {base + at}")
            yield r
            known = max(known, r.durable_to)
            sequence += 1
            at += r.span

    def read(self, position, size):
        base = max(b for b in self.segments if b <= position)
        return self.segments[base][position - base:position - base + size]


# ---- content [9] ----

class Content:
    def __init__(self, store, uuid, log):
        self.store = store
        self.uuid = uuid
        self.log = log
        self.packs = {}

    def pack(self, number):
        if number not in self.packs:
            path = os.path.join(self.store, "packs", f"{number:016x}.pack")
            try:
                with open(path, "rb") as f:
                    b = f.read()
            except FileNotFoundError:
                refuse("missing-pack", path)
            want = b"INCRPACK" + struct.pack("<II", 1, 0) + self.uuid + \
                struct.pack("<Q", number) + bytes(16)
            if b[:56] != want or b[56:64] != struct.pack("<Q", hash64(want)):
                refuse("damaged-pack", path)
            self.packs[number] = b
        return self.packs[number]

    def frame(self, container, off, stored, raw):
        """The raw bytes of one frame [9.1]."""
        if container == 0:
            b = self.log.read(off, stored)
        else:
            b = self.pack(container)[off:off + stored]
        if len(b) < stored or stored < 33:
            refuse("damaged-frame", f"{container:x} {off}: cut short")
        magic, codec, raw_size, stored_size, owner, want = struct.unpack(
            "<4sB3xIIQQ", b[:32])
        mask = off * 0x9e3779b97f4a7c15 % (1 << 64) if container else 0
        if (magic != b"FRME" or any(b[5:8]) or owner != container or
                raw_size != raw or stored_size != stored - 32 or
                not 1 <= raw_size <= 1 << 20 or
                want ^ mask != hash64(b[:24] + b[32:])):
            refuse("damaged-frame", f"{container:x} {off}")
        if codec == 0 and stored_size == raw_size:
            return b[32:]
        if codec == 1 and stored_size < raw_size:
            return expand(b[32:], raw_size)
        return refuse("damaged-frame", f"{container:x} {off}: codec")

    def descriptor(self, c, frames_position):
        """A content descriptor as a tuple [9.3]."""
        kind = c.varint()
        if kind == 0:
            return (0, 0)
        if kind == 1:
            size, container, off, stored, raw, part = (
                c.varint() for _ in range(6))
            c.check(1 <= raw <= 1 << 20 and part < raw and
                    1 <= size <= raw - part and 33 <= stored <= 32 + raw and
                    off + stored < 1 << 63)
            if container == (1 << 64) - 1:
                c.check(frames_position is not None)
                container, off = 0, off + frames_position
            c.check(container == 0 or off >= 64)
            return (1, size, container, off, stored, raw, part)
        c.check(kind in (2, 3))
        size, shift, n = c.varint(), c.varint(), c.varint()
        c.check(size >= 1 and 12 <= shift <= 20 and 1 <= n <= 65536)
        extents = []
        for _ in range(n):
            e = tuple(c.varint() for _ in range(5))
            c.check(e[0] not in (0, (1 << 64) - 1) and e[1] >= 64 and
                    e[4] >= 1 and e[3] + e[4] <= e[2])
            extents.append(e)
        c.check(sum(e[4] for e in extents) == (size - 1 >> shift) + 1)
        if kind == 3:
            c.check(c.u64() != 0)
        return (2, size, 1 << shift, extents)

    def places(self, extents):
        """Where the frames of all extents stand, in order."""
        for container, index_off, index_n, first, n_frames in extents:
            for i in range(first, first + n_frames):
                k = i // 4096
                n = min(4096, index_n - k * 4096)
                index = self.frame(container, index_off + k * 65568,
                                   32 + n * 16, n * 16)
                off, stored, zero = struct.unpack_from("<QII", index,
                                                       i % 4096 * 16)
                if zero:
                    refuse("damaged-frame", "reserved bytes of an index")
                yield container, off, stored

    def read(self, d):
        if d[0] == 0:
            return b""
        if d[0] == 1:
            _, size, container, off, stored, raw, part = d
            return self.frame(container, off, stored, raw)[part:part + size]
        _, size, frame_size, extents = d
        parts = []
        for container, off, stored in self.places(extents):
            raw = min(frame_size, size - frame_size * len(parts))
            parts.append(self.frame(container, off, stored, raw))
        return b"".join(parts)

    def manifest(self, txn):
        """Entries (op, path, mode, mtime, hash, descriptor) [9.4]."""
        position = txn["frames_position"]
        data = txn["manifest"]
        if txn["manifest_kind"] & 1:
            c = Cursor(data, "damaged-manifest")
            d = self.descriptor(c, None)
            c.end()
            data, position = self.read(d), None
        c = Cursor(data, "damaged-manifest")
        last = None
        while c.left():
            op, path = c.u8(), c.string()
            c.check(op in (1, 2))
            check_path(c, path)
            c.check(last is None or last < path, "paths do not ascend")
            last = path
            if op == 2:
                yield (op, path, 0, 0, b"", None)
                continue
            mode, mtime, file_hash = c.varint(), c.zigzag(), c.bytes(16)
            c.check(mode <= 0o777)
            yield (op, path, mode, mtime, file_hash,
                   self.descriptor(c, position))


# ---- names [3] ----

def check_path(c, path):
    parts = path.split(b"/")
    c.check(1 <= len(path) <= 4095 and len(parts) <= 250 and b"\0" not in path
            and all(1 <= len(p) <= 255 and p not in (b".", b"..")
                    for p in parts), "bad path")


def check_part(c, part):
    c.check(1 <= len(part) <= 255 and b".." not in part and part != b"current",
            "bad name")
    try:
        text = part.decode()
    except UnicodeDecodeError:
        c.check(False, "bad name")
    for i, ch in enumerate(text):
        if ord(ch) < 0x80:
            c.check(ch.isalnum() or ch == "_" or (i and ch in ".+- "),
                    "bad name")
        else:
            c.check(not (ord(ch) < 0xa0 or 0x2028 <= ord(ch) <= 0x202e or
                         0x2066 <= ord(ch) <= 0x2069), "bad name")


def check_name(c, name):
    c.check(len(name) <= 4095, "bad name")
    for part in name.split(b"/"):
        check_part(c, part)


# ---- facts [7] ----

def pairs_of(data):
    c = Cursor(data)
    out = []
    for _ in range(c.varint() if data else 0):
        key, has_value, value = c.string(), c.flag(), c.string()
        c.check(has_value)
        out.append((key, value))
    c.end()
    return out


def read_dataset(c):
    d = {"id": c.varint(), "name": c.string(), "description": c.string(),
         "meta": pairs_of(c.string()), "created": c.zigzag(),
         "user": c.string(), "branch_id": c.varint(), "line": c.varint(),
         "is_deleted": False}
    check_name(c, d["name"])
    c.check(d["id"] and d["branch_id"] and d["line"])
    return d


def read_branch(c):
    b = {"id": c.varint(), "dataset_id": c.varint(), "line": c.varint(),
         "name": c.string(), "parent": c.string(), "parent_line": c.varint(),
         "head": c.varint(), "created": c.zigzag(), "open": 0,
         "is_deleted": False}
    check_part(c, b["name"])
    if b["parent"]:
        check_part(c, b["parent"])
    c.check(b["id"] and b["dataset_id"] and b["line"] > b["parent_line"])
    return b


def read_txn(c):
    t = {"type": c.u8(), "manifest_kind": c.u8()}
    for name in ("number", "dataset_id", "branch_id", "line", "parent",
                 "view_start", "n_files", "n_removed", "size", "view_files",
                 "view_size", "build", "frames_off"):
        t[name] = c.varint()
    for name in ("origin", "user", "message"):
        t[name] = c.string()
    t["meta"] = pairs_of(c.string())
    t["opened"], t["closed"] = c.zigzag(), c.zigzag()
    t["manifest"] = c.string()
    is_relative = t["manifest_kind"] & 2
    c.check(not is_relative or (t["type"] == 1 and t["parent"]))
    c.check(1 <= t["type"] <= 4 and t["manifest_kind"] <= 3 and t["number"] and
            t["dataset_id"] and t["branch_id"] and t["line"] and
            t["parent"] < t["number"] and t["view_start"] <= t["number"])
    return t


def read_build(c):
    b = {"number": c.varint(), "status": c.u8(), "transform": c.string(),
         "record": c.string()}
    check_name(c, b["transform"])
    c.check(b["number"] and 1 <= b["status"] <= 4)
    return b


def read_losses(c):
    """Stretches, manifests and files that are given up [7.6]."""
    c.zigzag()
    for _ in range(5):
        c.varint()
    ranges = [(c.varint(), c.varint(), c.varint()) for _ in range(c.varint())]
    last = 0
    for start, to, sequence in ranges:
        c.check(last <= start < to < 1 << 63 and start % 8 == 0 and
                to % 8 == 0 and sequence)
        last = to
    manifests = [c.varint() for _ in range(c.varint())]
    files = [(c.varint(), c.string()) for _ in range(c.varint())]
    c.check(all(manifests) and all(txn for txn, _ in files))
    for _, path in files:
        check_path(c, path)
    c.end()
    return ranges, manifests, files


class Facts:
    """What the log amounts to."""

    def __init__(self, log):
        self.datasets, self.branches, self.txns = {}, {}, {}
        self.builds, self.schemas = {}, []
        self.log, self.given_up = log, set()
        apply = {2: self.dataset_created, 3: self.dataset_renamed,
                 4: self.dataset_deleted, 5: self.dataset_meta,
                 6: self.branch_created, 7: self.branch_deleted,
                 8: self.branch_reset, 9: self.txn_opened,
                 10: self.txn_aborted, 11: self.commit, 12: self.schema,
                 13: self.build, 14: self.build, 15: self.losses}
        for r in log.records():
            if r.type == 1:
                continue
            if r.type not in apply:
                refuse("newer-format", f"a record of type {r.type}")
            c = Cursor(r.payload)
            self.position = r.position
            apply[r.type](c)
            c.end()

    def excuse(self, c, why):
        """Facts may lean on what is lost [7.6]."""
        c.check(self.log.has_holes, why)

    def known(self, c, things, number):
        if number not in things:
            self.excuse(c, "it names what does not exist")
        return things.get(number)

    def lost_name(self, what, number, taken):
        names = [f"lost-{what}-{number}".encode()]
        while names[-1] in taken:
            names.append(names[0] + f"-{len(names)}".encode())
        return names[-1]

    def dataset_names(self):
        return {d["name"]: d for d in self.datasets.values()
                if not d["is_deleted"]}

    def branch_names(self, dataset_id):
        return {b["name"]: b for b in self.branches.values()
                if b["dataset_id"] == dataset_id and not b["is_deleted"]}

    def free_name(self, c, what, names, name, number):
        other = names.get(name)
        if other and other["id"] != number:
            self.excuse(c, "the name is in use")
            other["name"] = self.lost_name(what, other["id"], names)

    def branch_of(self, c, t):
        """The branch of a transaction, made when what made it is lost."""
        b = self.known(c, self.branches, t["branch_id"])
        if b:
            return b
        if t["dataset_id"] not in self.datasets:
            self.datasets[t["dataset_id"]] = {
                "id": t["dataset_id"], "description": b"", "meta": [],
                "created": 0, "user": b"", "is_deleted": False,
                "name": self.lost_name("dataset", t["dataset_id"],
                                       self.dataset_names())}
        taken = self.branch_names(t["dataset_id"])
        name = self.lost_name("branch", t["branch_id"], taken) \
            if b"main" in taken else b"main"
        b = {"id": t["branch_id"], "dataset_id": t["dataset_id"],
             "line": t["line"], "name": name, "parent": b"", "head": 0,
             "open": 0, "is_deleted": False}
        self.branches[b["id"]] = b
        return b

    def lose(self, t):
        t["status"] = "LOST"
        self.txns[t["number"]] = t

    def gap(self, c, t, b):
        """The branch has come to the parent by what is lost."""
        self.excuse(c, "its parent is not the head of its branch")
        parent = self.txns.get(t["parent"])
        start = t["parent"] if t["type"] == 1 or \
            t["view_start"] > t["parent"] else t["view_start"]
        if t["parent"] and not parent:
            self.lose({**t, "number": t["parent"], "type": 3,
                       "parent": b["head"] if b["head"] < t["parent"] else 0,
                       "view_start": start, "n_files": 0, "n_removed": 0,
                       "size": 0, "view_files": 0, "view_size": 0, "build": 0,
                       "origin": b"", "user": b"", "message": b"", "meta": [],
                       "opened": 0, "closed": 0})
        elif parent and parent["status"] == "OPEN":
            parent["view_start"] = start
            self.lose(parent)
            self.close(b, t["parent"])
        elif parent:
            c.check(parent["status"] != "ABORTED")
        b["head"], b["line"] = t["parent"], t["line"]

    def lose_open(self, b):
        if b["open"] and self.log.has_holes:
            t = self.txns[b["open"]]
            t["view_start"] = t["number"]
            self.lose(t)
            b["open"] = 0

    def losses(self, c):
        self.given_up.update(read_losses(c)[1])

    def dataset_created(self, c):
        d = read_dataset(c)
        self.free_name(c, "dataset", self.dataset_names(), d["name"], d["id"])
        self.datasets[d["id"]] = d
        self.branches[d["branch_id"]] = {
            "id": d["branch_id"], "dataset_id": d["id"], "line": d["line"],
            "name": b"main", "parent": b"", "head": 0, "open": 0,
            "is_deleted": False}

    def dataset_renamed(self, c):
        number, name = c.varint(), c.string()
        check_name(c, name)
        d = self.known(c, self.datasets, number)
        if d:
            self.free_name(c, "dataset", self.dataset_names(), name, number)
            d["name"] = name

    def dataset_deleted(self, c):
        d = self.known(c, self.datasets, c.varint())
        if d:
            d["is_deleted"] = True

    def dataset_meta(self, c):
        d, meta = self.known(c, self.datasets, c.varint()), c.string()
        if d:
            d["meta"] = pairs_of(meta)

    def branch_created(self, c):
        self.make_branch(c, read_branch(c))

    def make_branch(self, c, b):
        self.free_name(c, "branch", self.branch_names(b["dataset_id"]),
                       b["name"], b["id"])
        self.branches[b["id"]] = b

    def branch_deleted(self, c):
        gone = self.known(c, self.branches, c.varint())
        if not gone:
            return
        gone["is_deleted"] = True
        for b in self.branches.values():
            if (b["dataset_id"] == gone["dataset_id"] and
                    b["parent"] == gone["name"] and not b["is_deleted"]):
                b["parent"] = gone["parent"]

    def branch_reset(self, c):
        b = self.known(c, self.branches, c.varint())
        line, parent_line, head = c.varint(), c.varint(), c.varint()
        c.zigzag()
        c.check(head and 0 < parent_line < line)
        if b:
            b["line"], b["head"] = line, head

    def txn_opened(self, c):
        t = read_txn(c)
        t["status"] = "OPEN"
        b = self.branch_of(c, t)
        self.lose_open(b)
        self.txns[t["number"]] = t
        b["open"] = t["number"]

    def close(self, branch, number):
        if branch["open"] == number:
            branch["open"] = 0

    def txn_aborted(self, c):
        t, closed = self.txns.get(c.varint()), c.zigzag()
        if not t or t["status"] != "OPEN":
            return self.excuse(c, "it is not open")
        t["status"], t["closed"] = "ABORTED", closed
        return self.close(self.branches[t["branch_id"]], t["number"])

    def commit(self, c):
        head = Cursor(c.bytes(c.u32()))
        frames_position = self.position + 64 + 4 + len(head.data)
        for _ in range(head.varint()):
            self.make_branch(head, read_branch(head))
        for _ in range(head.varint()):
            t = read_txn(head)
            b = self.branch_of(head, t)
            head.check(t["dataset_id"] == b["dataset_id"])
            if t["parent"] != b["head"] or t["line"] != b["line"]:
                self.gap(head, t, b)
            if b["open"] != t["number"]:
                self.lose_open(b)
            t["status"] = "COMMITTED"
            t["frames_position"] = frames_position + t["frames_off"]
            self.txns[t["number"]] = t
            self.close(b, t["number"])
            b["head"] = t["number"]
        if head.flag():
            b = read_build(head)
            self.builds[b["number"]] = b
        head.end()
        c.bytes(c.left())  # the frames

    def schema(self, c):
        self.schemas.append((c.varint(), c.varint(), c.varint(), c.string()))

    def build(self, c):
        b = read_build(c)
        self.builds[b["number"]] = b

    def path(self, head):
        """Transactions from a head back to the first one."""
        while head:
            t = self.txns[head]
            yield t
            head = t["parent"]

    def schema_of(self, dataset_id, head):
        """[7.5]"""
        of = [s for s in self.schemas if s[0] == dataset_id]
        line = 0
        for t in self.path(head):
            line = t["line"]
            found = [s[3] for s in of if s[2] == t["number"]]
            if found:
                return found[-1]
        found = [s[3] for s in of if s[2] == 0 and s[1] == line]
        return found[-1] if found else None

    def view(self, content, head):
        """path -> (entry, transaction) [10]"""
        files = {}
        start = self.txns[head]["view_start"]
        path = []
        for t in self.path(head):
            path.append(t)
            if t["type"] == 1 and not t["manifest_kind"] & 2:
                break
        is_whole = True
        for t in reversed(path):
            if t["status"] == "LOST":
                is_whole = False
                continue
            for entry in content.manifest(t):
                if entry[0] == 1:
                    files[entry[1]] = (entry, max(t["number"], start))
                else:
                    files.pop(entry[1], None)
        if is_whole and (
                len(files) != self.txns[head]["view_files"] or
                sum(e[5][1] for e, _ in files.values()) !=
                self.txns[head]["view_size"]):
            refuse("bad-fact", f"the totals of t{head} are wrong")
        return files


# ---- printing ----

TYPES = {1: "SNAPSHOT", 2: "APPEND", 3: "UPDATE", 4: "DELETE"}


def word(data):
    return "".join(chr(b) if 0x20 < b < 0x7f and b != 0x25 else f"%{b:02x}"
                   for b in data) or "-"


def print_txn(t):
    print(f"txn t{t['number']} {TYPES[t['type']]} {t['status']}"
          f" parent={t['parent']} start={t['view_start']}"
          f" put={t['n_files']} removed={t['n_removed']} size={t['size']}"
          f" view={t['view_files']},{t['view_size']} build={t['build']}"
          f" times={t['opened']},{t['closed']} {word(t['origin'])}"
          f" {word(t['user'])} {word(t['message'])} ")


def print_branch(facts, content, b):
    print(f"branch {b['id']} {word(b['name'])} {word(b['parent'])}"
          f" head={b['head']} open={b['open']}")
    if not b["head"]:
        return
    for t in facts.path(b["head"]):
        print_txn(t)
    schema = facts.schema_of(b["dataset_id"], b["head"])
    if schema is not None:
        print(f"schema {word(schema)} ")
    for path, (e, txn) in sorted(facts.view(content, b["head"]).items()):
        data = content.read(e[5])
        got = hash128(data)
        print(f"file {word(path)} {e[2]:o} {e[3]} {len(data)} t{txn}"
              f" {got.hex()}" + (" WRONG" if got != e[4] else ""))


def print_store(store):
    uuid = read_format(store)
    log = Log(store, uuid)
    facts = Facts(log)
    content = Content(store, uuid, log)
    u = uuid.hex()
    print(f"store {u[:8]}-{u[8:12]}-{u[12:16]}-{u[16:20]}-{u[20:]}")
    for d in sorted(facts.datasets.values(), key=lambda d: d["name"]):
        if d["is_deleted"]:
            continue
        meta = "".join(f" {word(k)} {word(v)} " for k, v in d["meta"])
        print(f"dataset {d['id']} {word(d['name'])} {word(d['description'])}"
              f" {d['created']}{meta}")
        for b in sorted(facts.branches.values(), key=lambda b: b["name"]):
            if b["dataset_id"] == d["id"] and not b["is_deleted"]:
                print_branch(facts, content, b)
    for number, t in sorted(facts.txns.items()):
        if t["status"] == "OPEN":
            print_txn(t)
    for number, b in sorted(facts.builds.items()):
        print(f"build b{number} {b['status']} {word(b['transform'])}"
              f" {b['record'].hex()}")


def print_packs(store):
    """The packs that records name; others are no one's [9.2]."""
    uuid = read_format(store)
    log = Log(store, uuid)
    content = Content(store, uuid, log)
    named = set()

    def name(d):
        if d and d[0] == 1:
            named.add(d[2])
        elif d and d[0] == 2:
            named.update(e[0] for e in d[3])

    for t in Facts(log).txns.values():
        if t["status"] != "COMMITTED":
            continue
        if t["manifest_kind"] & 1:
            name(content.descriptor(Cursor(t["manifest"]), None))
        for entry in content.manifest(t):
            name(entry[5])
    for number in sorted(named - {0}):
        print(f"packs/{number:016x}.pack")


def main():
    is_packs = sys.argv[1:2] == ["--packs"]
    if len(sys.argv) != 2 + is_packs:
        sys.exit(__doc__)
    try:
        (print_packs if is_packs else print_store)(sys.argv[-1])
    except Refused as e:
        sys.exit(f"read_store.py: {e}")


if __name__ == "__main__":
    main()

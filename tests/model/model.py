"""A model of the rulebook: what the store must show and decide.

It keeps everything in memory and computes every answer the slow and obvious
way, so that it can be read beside docs/semantics.md.  It shares no code with
the program; rule numbers (R80, row 35, Q4) are those of that page.

A file version is (path, transaction that wrote it); a view is a dict from
path to the Txn that wrote the version.
"""

import copy
from dataclasses import dataclass, field

SNAPSHOT, APPEND, UPDATE, DELETE = "SNAPSHOT", "APPEND", "UPDATE", "DELETE"
OPEN, COMMITTED, ABORTED = "OPEN", "COMMITTED", "ABORTED"
VIEW_KINDS = ("added", "previous", "current", "modified", "removed")

# What starts a new output view anyway and so cures the errors of R35.
CURES = {"first-build", "semantic-version", "forced", "v2-changed",
         "provenance-inconsistent", "output-foreign-commit",
         "output-user-delete", "output-retention-delete"}
HARD = {"processed-transaction-not-in-view", "branch-order",
        "limit-bad-transaction"}


class Refused(Exception):
    """An operation that must fail and change nothing; word is its code."""

    def __init__(self, word, exit_code, paths=(), also=()):
        super().__init__(word)
        self.word = word
        self.also = also           # other words that fit as well
        self.exit_code = exit_code
        self.paths = sorted(paths)


@dataclass(frozen=True)
class File:
    content: str
    mode: int = 0o644


@dataclass(eq=False)
class Txn:
    number: int
    dataset: "Dataset"
    type: str
    origin: str = "user"
    parent: "Txn" = None
    status: str = OPEN
    files: dict = field(default_factory=dict)      # path -> File
    removed: set = field(default_factory=set)      # of a DELETE
    record: "Build" = None                         # that committed it
    real: int = None               # its number in a store under test

    def __repr__(self):
        return "t%d" % self.number

    def line(self):
        """Oldest first: every transaction up to this one (R22, R24)."""
        out, at = [], self
        while at is not None:
            out.append(at)
            at = at.parent
        return out[::-1]

    def start(self):
        """First transaction of the view (R23, R25)."""
        line = self.line()
        for txn in reversed(line):
            if txn.type == SNAPSHOT:
                return txn
        return line[0]

    def segment(self):
        """The transactions of the view, from its start to this one."""
        line = self.line()
        return line[line.index(self.start()):]


def view(txn):
    """path -> writer at a transaction; None gives the empty view (R22)."""
    out = {}
    if txn is None:
        return out
    if hasattr(txn, "_view"):
        return dict(txn._view)
    for step in txn.segment():
        for path in step.removed:
            out.pop(path, None)
        for path in step.files:
            out[path] = step
    txn._view = dict(out)      # committed transactions never change
    return out


def in_the_way(p, q):
    """R21: x and x/y cannot both be files."""
    return q.startswith(p + "/") or p.startswith(q + "/")


def paths_conflict(paths):
    return any(in_the_way(p, q) for p in paths for q in paths)


def is_on_path(txn, head):
    return head is not None and txn in head.line()


@dataclass(eq=False)
class Branch:
    name: str
    head: Txn = None
    open: Txn = None


@dataclass(eq=False)
class Dataset:
    name: str
    branches: dict = field(default_factory=dict)
    txns: list = field(default_factory=list)       # committed, oldest first


@dataclass
class Input:
    dataset: str
    branch: str = None
    snapshot: bool = False
    limit: int = 0


@dataclass
class Output:
    dataset: str
    write_mode: str = None                         # modify, replace, append


@dataclass
class Transform:
    name: str
    inputs: dict                                   # alias -> Input
    outputs: dict                                  # alias -> Output
    semantic_version: int = 1
    require_incremental: bool = False
    allow_retention: bool = False
    allow_user_deletes: bool = False
    strict_append: bool = False
    v2_semantics: bool = False
    abort_if_empty: bool = False
    branch: str = "main"
    fallbacks: tuple = ()
    command: tuple = ()

    def check(self):
        """Definition errors (R46, R66, R72, R129, R135, R136, R139)."""
        def wrong(word):
            raise Refused(word, 2)
        if not self.inputs:
            wrong("no-input")
        if not self.outputs:
            wrong("no-output")
        aliases = [a.upper().replace("-", "_")
                   for a in list(self.inputs) + list(self.outputs)]
        if len(set(aliases)) != len(aliases):
            wrong("duplicate-alias")
        targets = [o.dataset for o in self.outputs.values()]
        if len(set(targets)) != len(targets):
            wrong("duplicate-output")
        if set(targets) & {i.dataset for i in self.inputs.values()}:
            wrong("input-is-output")
        if not self.v2_semantics and (
                self.allow_user_deletes
                or any(i.limit for i in self.inputs.values())):
            wrong("needs-v2")
        if any(i.limit < 0 for i in self.inputs.values()):
            wrong("bad-limit")
        if any(i.limit and i.snapshot for i in self.inputs.values()):
            wrong("limit-on-snapshot-input")
        if self.strict_append and any(
                o.write_mode == "replace" for o in self.outputs.values()):
            wrong("strict-append-replace")

    def settings(self):
        """What must be equal for a transform to be fresh, but for inputs."""
        return (self.semantic_version, self.require_incremental,
                self.allow_retention, self.allow_user_deletes,
                self.strict_append, self.v2_semantics, self.abort_if_empty,
                sorted((a, o.dataset, o.write_mode)
                       for a, o in self.outputs.items()))

    def where(self):
        """Where it reads and writes: the part of freshness left open."""
        return (self.branch, tuple(self.fallbacks),
                sorted((a, i.branch) for a, i in self.inputs.items()))


@dataclass
class Reason:
    code: str
    alias: str = None
    txn: Txn = None
    path: str = None
    count: int = None
    txns: list = field(default_factory=list)       # all that it may name


@dataclass
class InputPlan:
    alias: str
    dataset: Dataset
    branch: str
    kind: str
    limit: int
    head: Txn
    start: Txn
    previous_end: Txn = None
    last_read: Txn = None                          # Pend
    read_end: Txn = None                           # E
    is_new: bool = True
    is_blurred: bool = False        # net change to Pend has no meaning
    views: dict = field(default_factory=dict)


@dataclass
class OutputPlan:
    alias: str
    dataset: Dataset
    branch: str
    head: Txn
    write_mode: str = None
    type: str = None


@dataclass
class Plan:
    transform: Transform
    decision: str = None
    is_incremental: bool = False
    reasons: list = field(default_factory=list)
    inputs: dict = field(default_factory=dict)
    outputs: dict = field(default_factory=dict)
    previous: "Build" = None
    fresh_doubt: bool = False       # fresh or incremental: the page is silent
    is_let_out: bool = False        # of require_incremental

    def codes(self):
        return sorted({r.code for r in self.reasons})


@dataclass(eq=False)
class Build:
    number: int
    plan: Plan
    status: str = "open"
    staged: dict = field(default_factory=dict)     # alias -> path -> File
    dropped: set = field(default_factory=set)      # aliases aborted
    committed: dict = field(default_factory=dict)  # alias -> Txn
    is_skip: bool = False
    real: int = None

    @property
    def transform(self):
        return self.plan.transform

    def ranges(self):
        """What it read of each input, as R78 compares it."""
        return {a: (p.dataset, p.start, p.read_end)
                for a, p in self.plan.inputs.items()}

    def stage(self, alias, path, content, mode=0o644):
        self.staged[alias][path] = File(content, mode)

    def output_view(self, alias, kind):
        """Section 4: added, previous and current of an output, live, as
        path -> Txn, or File for what is staged."""
        out = self.plan.outputs[alias]
        staged = self.staged[alias]
        if kind == "added":
            return dict(staged)
        if kind == "previous":
            return view(out.head) if self.plan.is_incremental else {}
        base = {} if out.write_mode == "replace" else view(out.head)
        # By R21 such a commit fails; files alone can show one of the two.
        return {**{path: txn for path, txn in base.items()
                   if not any(in_the_way(path, s) for s in staged)}, **staged}


class Store:
    def __init__(self):
        self.datasets = {}
        self.builds = []
        self.committed = {}        # transform name -> last committed Build
        self.n_txns = 0

    # ---------------------------------------------------- transactions

    def create(self, name):
        self.datasets[name] = Dataset(name, {"main": Branch("main")})
        return self.datasets[name]

    def branch(self, name, branch="main"):
        if branch not in self.datasets[name].branches:
            raise Refused("no-such-branch", 3)
        return self.datasets[name].branches[branch]

    def head(self, name, branch="main"):
        found = self.datasets[name].branches.get(branch)
        return found.head if found else None

    def _new_txn(self, dataset, type_, origin, parent):
        self.n_txns += 1
        return Txn(self.n_txns, dataset, type_, origin, parent)

    def begin(self, name, type_=APPEND, origin="user", branch="main"):
        at = self.branch(name, branch)
        if at.open:
            raise Refused("open-transaction", 4)           # R3
        at.open = self._new_txn(self.datasets[name], type_, origin, at.head)
        at.open.branch = at
        return at.open

    @staticmethod
    def put(txn, path, content, mode=0o644, overwrite=False):
        if path in txn.files and not overwrite:
            raise Refused("already-staged", 4)             # R15
        txn.files[path] = File(content, mode)

    @staticmethod
    def unput(txn, path):
        if txn.type == DELETE:
            txn.removed.add(path)
        elif path not in txn.files:
            raise Refused("committed-path", 2)             # R14
        else:
            del txn.files[path]

    @staticmethod
    def commit_txn(txn):
        if txn.status != OPEN:
            raise Refused("not-open", 4)                   # R1
        kept = {} if txn.type == SNAPSHOT else view(txn.branch.head)
        conflict = ["path-conflict"] * paths_conflict({*kept, *txn.files})
        hit = set(txn.files) & set(kept)
        if txn.type == APPEND and hit:
            raise Refused("append-collision", 4, hit, conflict)    # R8, R9
        if conflict:
            raise Refused(*conflict, 2)
        if txn.type == DELETE:
            txn.removed &= set(view(txn.branch.head))
        txn.status = COMMITTED
        txn.branch.head, txn.branch.open = txn, None
        txn.dataset.txns.append(txn)
        return txn

    @staticmethod
    def abort_txn(txn):
        if txn.status != OPEN:
            raise Refused("not-open", 4)
        txn.status, txn.branch.open = ABORTED, None

    def commit(self, name, type_, files, origin="user", branch="main",
               rewrite=False, skip_empty=False):
        """One transaction of files: path -> content or File.  None when
        there was nothing to commit and skip_empty."""
        at = self.branch(name, branch)
        if at.open:
            raise Refused("open-transaction", 4)
        files = {p: f if isinstance(f, File) else File(f)
                 for p, f in files.items()}
        if type_ == UPDATE and not rewrite:
            files = changed_only(files, view(at.head))
        if skip_empty and not files:
            return None
        txn = self.begin(name, type_, origin, branch)
        txn.files = files
        try:
            return self.commit_txn(txn)
        except Refused:
            self.abort_txn(txn)
            raise

    def remove(self, name, paths, origin="user", branch="main",
               ignore_missing=False):
        at = self.branch(name, branch)
        if at.open:
            raise Refused("open-transaction", 4)
        missing = set(paths) - set(view(at.head))
        if missing and not ignore_missing:
            raise Refused("no-such-path", 3, missing)
        txn = self.begin(name, DELETE, origin, branch)
        txn.removed = set(paths) - missing
        return self.commit_txn(txn)

    # -------------------------------------------------------- branches

    def create_branch(self, name, branch, at):
        if branch in self.datasets[name].branches:
            raise Refused("branch-exists", 4)
        self.datasets[name].branches[branch] = Branch(branch, at)

    def delete_branch(self, name, branch):
        if self.branch(name, branch).open:
            raise Refused("open-transaction", 4)
        del self.datasets[name].branches[branch]           # R31

    def reset_branch(self, name, branch, to):
        at = self.branch(name, branch)
        if at.open:
            raise Refused("open-transaction", 4)
        at.head = to                                       # R37

    # ------------------------------------------------------- decisions

    def _resolve_branch(self, name, wanted, fallbacks):
        """R32, R33: the branch itself, else the first existing fallback."""
        for candidate in (wanted, *fallbacks):
            if candidate in self.datasets[name].branches:
                return candidate
        return None

    def _gather(self, transform, plan):
        for alias, spec in transform.inputs.items():
            dataset = self.datasets[spec.dataset]
            if spec.branch:
                name = self._resolve_branch(spec.dataset, spec.branch, ())
            else:
                name = self._resolve_branch(spec.dataset, transform.branch,
                                            transform.fallbacks)
            if name is None:
                raise Refused("no-such-branch", 3)
            head = dataset.branches[name].head
            kind = ("snapshot" if spec.snapshot else
                    "limited" if spec.limit else "normal")
            plan.inputs[alias] = InputPlan(
                alias, dataset, name, kind, spec.limit, head,
                head.start() if head else None)
        for alias, spec in transform.outputs.items():
            name = self._resolve_branch(spec.dataset, transform.branch,
                                        transform.fallbacks)
            plan.outputs[alias] = OutputPlan(
                alias, self.datasets[spec.dataset], transform.branch,
                self.head(spec.dataset, name) if name else None)

    @staticmethod
    def _judge_outputs(transform, plan):
        """R74-R78; returns alias -> newest own record behind the head, and
        which outputs were never built: without history, or with nothing but
        deletes that R77 skips."""
        records, unbuilt = {}, []
        for alias, out in plan.outputs.items():
            foreign = []
            for txn in reversed(out.head.line() if out.head else []):
                if txn.record and txn.record.transform.name == transform.name:
                    records[alias] = txn.record
                    break
                foreign.append(txn)
            else:
                if all(t.type == DELETE and t.origin == "retention"
                       and transform.allow_retention for t in foreign):
                    unbuilt.append(alias)
            deletes = [t for t in foreign if t.type == DELETE]
            by_retention = [t for t in deletes if t.origin == "retention"]
            kinds = (
                ("output-foreign-commit",
                 [t for t in foreign if t.type != DELETE]),
                ("output-user-delete",
                 [t for t in deletes if t.origin != "retention"]),
                ("output-retention-delete",
                 [] if transform.allow_retention else by_retention))
            for code, txns in kinds:
                if txns:
                    plan.reasons.append(Reason(code, alias, txns[0],
                                               count=len(txns), txns=txns))
        built = list(records.values())
        if built:
            plan.previous = max(built, key=lambda b: b.number)
        if any(b.ranges() != built[0].ranges() for b in built[1:]):
            plan.reasons.append(Reason("provenance-inconsistent"))
        if not built and not plan.reasons:
            plan.reasons.append(Reason("first-build"))
        return records, unbuilt

    @staticmethod
    def _judge_input(transform, plan, at, skip_hard):
        """R80, R81 and the errors of R35 for one input."""
        if at.limit and at.head:
            segment = at.head.segment()
            bad = [t for i, t in enumerate(segment) if t.type != APPEND
                   and not (i == 0 and t.type == SNAPSHOT)]
            if bad:                                        # R137
                at.is_blurred = True
                plan.reasons.append(Reason("limit-bad-transaction", at.alias,
                                           bad[0], count=len(bad), txns=bad))
        last = plan.previous.plan.inputs.get(at.alias) \
            if plan.previous else None
        if last is None:
            return                                         # R86, row 35
        if last.dataset is not at.dataset:
            if at.kind != "snapshot":
                plan.reasons.append(Reason("input-swapped", at.alias))
            return                                         # Q5
        if last.read_end is None:
            return
        at.is_new = False
        at.previous_end, at.last_read = last.head, last.read_end
        if at.kind == "snapshot":
            return                                         # R64
        if at.start is not last.start:                     # R36: start first
            plan.reasons.append(Reason("input-snapshot", at.alias, at.start))
            return
        if not is_on_path(at.last_read, at.head):
            at.is_blurred = True
            if not skip_hard:
                back = is_on_path(at.head, at.last_read)
                plan.reasons.append(Reason(
                    "branch-order" if back else
                    "processed-transaction-not-in-view",
                    at.alias, at.last_read, txns=[at.last_read, at.head]))
            return
        Store._judge_changes(transform, plan, at)

    @staticmethod
    def _judge_changes(transform, plan, at):
        end = batch_end(at, at.last_read)
        old, new = view(at.last_read), view(end)
        modified = sorted(p for p in old if p in new and old[p] is not new[p])
        by = {True: [], False: []}
        for path in sorted(set(old) - set(new)):
            by[remover(end, path).origin == "retention"].append(path)
        found = [("input-modified", modified)]
        if not transform.allow_user_deletes:
            found.append(("input-removed-user", by[False]))
        if not transform.allow_retention:
            found.append(("input-removed-retention", by[True]))
        for code, paths in found:
            if paths:
                txn = (new[paths[0]] if code == "input-modified"
                       else remover(end, paths[0]))
                plan.reasons.append(Reason(code, at.alias, txn, paths[0],
                                           len(paths)))

    def plan(self, transform, force=False, force_snapshot=False,
             command=None):
        transform.check()
        transform = copy.deepcopy(transform)
        plan = Plan(transform)
        self._gather(transform, plan)
        records, unbuilt = self._judge_outputs(transform, plan)
        if plan.previous:
            was = plan.previous.transform
            if was.semantic_version != transform.semantic_version:
                plan.reasons.append(Reason("semantic-version"))    # R61
            if was.v2_semantics != transform.v2_semantics:
                plan.reasons.append(Reason("v2-changed"))          # row 65
        if force_snapshot:
            plan.reasons.append(Reason("forced"))
        skip_hard = bool(CURES & set(plan.codes()))
        for at in plan.inputs.values():
            self._judge_input(transform, plan, at, skip_hard)
        # R59, Q1, Q17
        plan.is_let_out = bool(unbuilt) or bool(
            {"semantic-version", "forced"} & set(plan.codes()))
        self._decide(plan, records, force, command)
        return plan

    def _decide(self, plan, records, force, command):
        transform, codes = plan.transform, set(plan.codes())
        soft = codes - HARD
        plan.is_incremental = not soft
        for at in plan.inputs.values():
            set_views(at, plan.is_incremental)
        for out in plan.outputs.values():
            set_mode(out, transform, plan.is_incremental)
        if codes & HARD:
            plan.decision = "error"
        elif soft and transform.require_incremental and not plan.is_let_out:
            plan.decision = "refused"                      # R90
        elif soft:
            plan.decision = "snapshot"
        else:
            plan.decision = "incremental"
            if not force and self._is_fresh(plan, records, command):
                plan.decision = "fresh"

    @staticmethod
    def _is_fresh(plan, records, command):
        last = plan.previous
        now = {a: (p.dataset, p.kind, p.limit, p.read_end)
               for a, p in plan.inputs.items()}
        then = {a: (p.dataset, p.kind, p.limit, p.read_end)
                for a, p in last.plan.inputs.items()}
        if (now != then or set(records) != set(plan.outputs)
                or last.transform.settings() != plan.transform.settings()):
            return False
        if command is not None:
            if last.is_skip:
                plan.fresh_doubt = True
            elif tuple(command) != tuple(last.transform.command):
                return False
        if last.transform.where() != plan.transform.where():
            plan.fresh_doubt = True
        return True

    # ---------------------------------------------------------- builds

    def begin_build(self, transform, force=False, force_snapshot=False,
                    preview=False, skip=False):
        """The plan, and the Build if one runs; a preview gets no number."""
        plan = self.plan(transform, force, force_snapshot, transform.command)
        if plan.decision not in ("incremental", "snapshot"):
            return plan, None
        return plan, self.start_build(plan, preview, skip)

    def start_build(self, plan, preview=False, skip=False):
        for out in plan.outputs.values():
            at = out.dataset.branches.get(out.branch)
            if at and at.open and not preview:
                raise Refused("open-transaction", 4)
        build = Build(0, plan, is_skip=skip)
        build.staged = {alias: {} for alias in plan.outputs}
        if not preview:
            self.builds.append(build)
            build.number = len(self.builds)
        return build

    def commit_build(self, build, allow_empty=False):
        """All outputs or none (R41); a refusal leaves the build open."""
        if build.status != "open":
            raise Refused("not-open", 4)
        keep = [a for a in build.plan.outputs if a not in build.dropped]
        if not keep or (build.transform.abort_if_empty and not build.is_skip
                        and not any(build.staged[a] for a in keep)):
            build.status = "aborted"                       # R150
            return build
        wrong = [w for alias in keep for w in self._faults(
            build, build.plan.outputs[alias], allow_empty)]
        if wrong:
            word, paths = wrong[0]
            raise Refused(word, 4, paths if len(wrong) == 1 else (),
                          [w for w, _ in wrong[1:]])
        for alias in keep:
            self._commit_output(build, build.plan.outputs[alias])
        build.status = "committed"
        self.committed[build.transform.name] = build
        return build

    @staticmethod
    def _faults(build, out, allow_empty):
        """(word, paths) of everything that keeps an output from commit."""
        at = out.dataset.branches.get(out.branch)
        if at and at.open:
            yield "open-transaction", ()
        if at and at.head is not out.head:
            yield "branch-moved", ()
        base, staged = view(out.head), build.staged[out.alias]
        hit = set(base) & set(staged)
        if out.type == APPEND and hit:                     # R126
            strict = build.transform.strict_append \
                and build.plan.is_incremental
            yield ("strict-append-collision" if strict
                   else "append-collision"), hit
        kept = {} if out.type == SNAPSHOT else base
        if paths_conflict({*kept, *staged}):
            yield "path-conflict", ()
        if (out.type == SNAPSHOT and base and not staged
                and not allow_empty and not build.is_skip):
            yield "empty-replace", ()

    def _commit_output(self, build, out):
        branches = out.dataset.branches
        if out.branch not in branches:
            branches[out.branch] = Branch(out.branch, out.head)
        files = dict(build.staged[out.alias])
        type_ = out.type
        if type_ == UPDATE:
            files = changed_only(files, view(out.head))
        txn = self.begin(out.dataset.name, type_, "build", out.branch)
        txn.files, txn.record = files, build
        build.committed[out.alias] = self.commit_txn(txn)

    @staticmethod
    def abort_build(build, failed=False):
        if build.status != "open":
            raise Refused("not-open", 4)
        build.status = "failed" if failed else "aborted"

    # ---------------------------------------------------------- status

    def status(self, name):
        """(state, alias -> transactions behind) by the recorded definition;
        None for a transform without a committed build."""
        if name not in self.committed:
            return None
        plan = self.plan(self.committed[name].transform)
        if plan.previous is None:
            return "never", plan
        return ("fresh" if plan.decision == "fresh" else "stale"), plan


def changed_only(files, base):
    """What UPDATE records: not what equals the view's bytes and bits."""
    return {p: f for p, f in files.items()
            if p not in base or base[p].files[p] != f}


def remover(end, path):
    """The last transaction that removed a path (R56)."""
    for txn in reversed(end.line()):
        if path in txn.removed:
            return txn
    return None


def batch_end(at, after):
    """E: HEAD, or the N-th transaction after the last one read (R134)."""
    if not at.limit or at.head is None:
        return at.head
    todo = at.head.segment()
    if after is not None:
        todo = todo[todo.index(after) + 1:] if after in todo else todo
        if not todo:
            return after
    return todo[min(at.limit, len(todo)) - 1]


def set_views(at, is_incremental):
    """Section 3, with modified and removed of the decisions above it."""
    goes_on = is_incremental and not at.is_new and at.kind != "snapshot"
    at.read_end = batch_end(at, at.last_read if goes_on else None)
    new = view(at.read_end)
    old = view(at.last_read) if goes_on else {}
    at.views = {
        "added": {p: t for p, t in new.items() if p not in old},
        "previous": old,
        "current": new,
        "modified": {p: t for p, t in new.items()
                     if p in old and old[p] is not t},
        "removed": {p: t for p, t in old.items() if p not in new},
    }


def set_mode(out, transform, is_incremental):
    """Table 2.2, Q8 and Q24."""
    mode = transform.outputs[out.alias].write_mode
    out.write_mode = mode or ("modify" if is_incremental else "replace")
    out.type = {"modify": UPDATE, "append": APPEND,
                "replace": SNAPSHOT}[out.write_mode]
    if is_incremental and transform.strict_append:
        out.type = APPEND                                  # R125

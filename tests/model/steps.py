"""One history: random steps done to the model and to a real store alike.

A step is (kind, seed).  Everything else is drawn from the seed and from what
the model holds at that moment, so that a history from which steps were taken
away is a history too: that is what makes it shrink.
"""

import copy
import random

import compare
from compare import Mismatch, require, same
from model import (APPEND, COMMITTED, DELETE, SNAPSHOT, UPDATE, File, Input,
                   Output, Refused, Store, Transform, paths_conflict, view)

PATHS = ("a", "b", "c", "d/e", "d/f", "_x")
FILE_AND_DIRECTORY = "d"
BRANCHES = ("dev", "alt")
SOURCES = ("I1", "I2", "I3")
TARGETS = ("O1", "O2", "O3")

WEIGHTS = {
    "commit": 26, "remove": 6, "begin": 3, "put": 4, "unput": 2, "close": 6,
    "fork": 2, "reset": 2, "drop": 1, "foreign": 1, "settings": 5,
    "run": 34, "mount": 2, "end": 4, "plan": 6,
}


def transforms():
    return [
        Transform("first", {"i": Input("I1"), "j": Input("I2")},
                  {"o": Output("O1"), "p": Output("O2")},
                  command=("sh", "cmd", "1")),
        Transform("chain", {"u": Input("O1"), "v": Input("I3")},
                  {"q": Output("O3")}, command=("sh", "cmd", "1")),
        Transform("rival", {"i": Input("I1")}, {"o": Output("O1")},
                  command=("sh", "cmd", "1")),
    ]


def draw(seed, n):
    """A history of n steps."""
    rng = random.Random(seed)
    kinds, weights = zip(*WEIGHTS.items())
    return [(kind, rng.getrandbits(32))
            for kind in rng.choices(kinds, weights, k=n)]


class History:
    def __init__(self, backend, plans_all):
        self.real = backend
        self.plans_all = plans_all     # plan everything after every step
        self.model = Store()
        self.transforms = transforms()
        self.open_txns = []
        self.open_builds = []
        self.n_texts = 0
        self.touched = set()
        require("error" not in backend.opened, "init: %s", backend.opened)
        for name in SOURCES + TARGETS:
            self.model.create(name)
            reply = self.real.create(name)
            require("error" not in reply, "create: %s", reply)

    # -------------------------------------------------------- small things

    def text(self):
        self.n_texts += 1
        return "w%d" % self.n_texts

    def some_files(self, rng, base):
        """path -> File; now and then the very bytes that base has."""
        files = {}
        paths = rng.sample(PATHS, rng.choice((0, 1, 1, 1, 2, 2, 3)))
        if rng.random() < 0.03 and not any("/" in p for p in paths):
            paths.append(FILE_AND_DIRECTORY)
        for path in paths:
            old = base.get(path)
            if old is not None and rng.random() < 0.2:
                files[path] = old.files[path]
            else:
                mode = 0o755 if rng.random() < 0.1 else 0o644
                files[path] = File(self.text(), mode)
        return files

    def some_branch(self, rng, name):
        names = list(self.model.datasets[name].branches)
        return "main" if rng.random() < 0.75 else rng.choice(names)

    def agree(self, what, act, reply):
        """Do the same to the model; both must succeed or both fail."""
        try:
            result = act()
        except Refused as refused:
            compare.failure(what, refused, reply)
            return None
        require("error" not in reply, "%s failed: %s", what,
                reply.get("error"))
        return result

    def learn(self, txn, reply):
        if txn is not None:
            txn.real = compare.number(reply.get("transaction"))
            require(txn.real, "no transaction in %s", reply)
            compare.txn_line(txn, reply)

    def step(self, kind, seed):
        self.touched = set()
        getattr(self, "do_" + kind)(random.Random(seed))
        for name, branch in sorted(self.touched):
            compare.dataset(self.real, self.model, name, branch)
        rng = random.Random(seed + 1)
        self.check_past(rng)
        for transform in self.transforms:
            if self.plans_all or rng.random() < 0.3:
                self.check_plan(rng, transform)
        if self.plans_all or rng.random() < 0.3:
            for transform in self.transforms:
                compare.status(self.real, self.model, transform.name)
        if rng.random() < 0.05:
            compare.changes(self.real, self.model,
                            rng.choice(self.transforms).name)

    def finish(self):
        for name, dataset in self.model.datasets.items():
            for branch in dataset.branches:
                compare.dataset(self.real, self.model, name, branch)

    def check_past(self, rng):
        """An old view, and what changed from one to another."""
        name = rng.choice(SOURCES + TARGETS)
        txns = self.model.datasets[name].txns
        if txns and rng.random() < (0.5 if self.plans_all else 0.1):
            to = rng.choice(txns)
            since = rng.choice(to.line())
            compare.past(self.real, name, since)
            compare.diff(self.real, name, since, to)

    def check_plan(self, rng, transform):
        flags = "".join(f for f, p in (("f", .3), ("s", .05), ("c", .2))
                        if rng.random() < p)
        try:
            plan = self.model.plan(
                transform, "f" in flags, "s" in flags,
                None if "c" in flags else transform.command)
        except Refused as refused:
            compare.failure("plan", refused,
                            self.real.plan(transform, flags))
            return
        compare.plan("plan of " + transform.name, plan,
                     self.real.plan(transform, flags))

    # ------------------------------------------------------- transactions

    def do_commit(self, rng, names=SOURCES):
        name = rng.choice(names)
        branch = self.some_branch(rng, name)
        type_ = rng.choices((APPEND, UPDATE, SNAPSHOT), (6, 4, 1))[0]
        base = view(self.model.head(name, branch))
        files = self.some_files(rng, base)
        if type_ == APPEND and rng.random() < 0.85:
            files = {p: f for p, f in files.items() if p not in base}
        flags = "".join(f for f, p in (("r", .3), ("s", .1))
                        if rng.random() < p and (f, type_) != ("r", APPEND))
        origin = rng.choice(("user", "user", "retention", "gdpr"))
        reply = self.real.commit(name, branch, type_, origin, files, flags)
        txn = self.agree("commit", lambda: self.model.commit(
            name, type_, files, origin, branch, "r" in flags, "s" in flags),
            reply)
        self.learn(txn, reply)
        self.touched.add((name, branch))

    def do_foreign(self, rng):
        rng.choice((self.do_commit, self.do_remove))(rng, TARGETS)

    def do_remove(self, rng, names=SOURCES):
        name = rng.choice(names)
        branch = self.some_branch(rng, name)
        base = sorted(view(self.model.head(name, branch)))
        paths = rng.sample(base, min(len(base), rng.choice((1, 1, 2))))
        if rng.random() < 0.1 or not paths:
            paths.append(rng.choice(PATHS))
        flags = "i" if rng.random() < 0.3 else ""
        origin = rng.choice(("user", "retention", "retention", "gdpr"))
        reply = self.real.remove(name, branch, origin, paths, flags)
        txn = self.agree("rm", lambda: self.model.remove(
            name, paths, origin, branch, bool(flags)), reply)
        self.learn(txn, reply)
        self.touched.add((name, branch))

    def do_begin(self, rng):
        name = rng.choice(SOURCES + SOURCES + TARGETS)
        branch = self.some_branch(rng, name)
        type_ = rng.choice((APPEND, UPDATE, SNAPSHOT, DELETE))
        origin = rng.choice(("user", "retention"))
        reply = self.real.begin(name, branch, type_, origin)
        txn = self.agree("begin", lambda: self.model.begin(
            name, type_, origin, branch), reply)
        if txn is not None:
            txn.real = compare.number(reply["transaction"])
            self.open_txns.append(txn)
        self.touched.add((name, branch))

    def do_put(self, rng):
        if not self.open_txns:
            return
        txn = rng.choice(self.open_txns)
        if txn.type == DELETE:
            self.do_unput(rng)
            return
        path, file = rng.choice(PATHS), File(self.text())
        flags = "o" if rng.random() < 0.5 else ""
        self.agree("put", lambda: self.model.put(
            txn, path, file.content, file.mode, bool(flags)),
            self.real.put(txn.real, path, file, flags))

    def do_unput(self, rng):
        if not self.open_txns:
            return
        txn = rng.choice(self.open_txns)
        if txn.type == DELETE:
            paths = sorted(view(txn.branch.head))
        else:
            paths = sorted({*txn.files, *view(txn.branch.head)})
        if paths:
            path = rng.choice(paths)
            self.agree("unput", lambda: self.model.unput(txn, path),
                       self.real.unput(txn.real, path))

    def do_close(self, rng):
        if not self.open_txns:
            return
        txn = rng.choice(self.open_txns)
        self.touched.add((txn.dataset.name, txn.branch.name))
        if rng.random() < 0.7:
            reply = self.real.commit_txn(txn.real)
            self.agree("txn commit", lambda: self.model.commit_txn(txn),
                       reply)
            if txn.status == COMMITTED:
                self.learn(txn, reply)
        else:
            self.agree("txn abort", lambda: self.model.abort_txn(txn),
                       self.real.abort_txn(txn.real))
        if txn.status != "OPEN":
            self.open_txns.remove(txn)

    # ----------------------------------------------------------- branches

    def do_fork(self, rng):
        name = rng.choice(SOURCES + TARGETS)
        branch = rng.choice(BRANCHES)
        txns = self.model.datasets[name].txns
        if not txns or branch in self.model.datasets[name].branches:
            return
        at = rng.choice(txns[-4:])
        self.agree("branch create", lambda: self.model.create_branch(
            name, branch, at), self.real.branch_create(name, branch, at.real))
        self.touched.add((name, branch))

    def do_reset(self, rng):
        name = rng.choice(SOURCES + TARGETS)
        branch = self.some_branch(rng, name)
        txns = self.model.datasets[name].txns
        if not txns:
            return
        to = rng.choice(txns[-5:])
        self.agree("branch reset", lambda: self.model.reset_branch(
            name, branch, to), self.real.branch_reset(name, branch, to.real))
        self.touched.add((name, branch))

    def do_drop(self, rng):
        name = rng.choice(SOURCES + TARGETS)
        names = [b for b in self.model.datasets[name].branches if b != "main"]
        if names:
            branch = rng.choice(names)
            self.agree("branch delete", lambda: self.model.delete_branch(
                name, branch), self.real.branch_delete(name, branch))

    # ----------------------------------------------------------- settings

    def do_settings(self, rng):
        transform = rng.choice(self.transforms)
        field = rng.choice((
            "require_incremental", "semantic_version", "allow_retention",
            "allow_user_deletes", "strict_append", "v2_semantics", "snapshot",
            "limit", "mode", "input", "output", "branch", "command",
            "abort_if_empty", "swap", "snapshot", "limit", "mode",
            "allow_retention"))
        if hasattr(self, "set_" + field):
            getattr(self, "set_" + field)(rng, transform)
        else:
            setattr(transform, field, not getattr(transform, field))
        make_valid(transform, field)

    @staticmethod
    def set_semantic_version(rng, transform):
        transform.semantic_version = rng.choice((-1, 1, 2, 2 ** 62))

    @staticmethod
    def set_snapshot(rng, transform):
        spec = rng.choice(list(transform.inputs.values()))
        spec.snapshot, spec.limit = not spec.snapshot, 0

    @staticmethod
    def set_limit(rng, transform):
        spec = rng.choice(list(transform.inputs.values()))
        spec.limit, spec.snapshot = rng.choice((0, 1, 2)), False
        transform.v2_semantics |= spec.limit > 0

    @staticmethod
    def set_mode(rng, transform):
        spec = rng.choice(list(transform.outputs.values()))
        spec.write_mode = rng.choice((None, "modify", "replace", "append"))

    @staticmethod
    def set_input(rng, transform):
        alias = rng.choice("ijk")
        if alias in transform.inputs and len(transform.inputs) > 1:
            del transform.inputs[alias]
        else:
            transform.inputs.setdefault(alias, Input(rng.choice(SOURCES)))

    @staticmethod
    def set_swap(rng, transform):
        spec = rng.choice(list(transform.inputs.values()))
        if spec.dataset in SOURCES:
            spec.dataset = rng.choice(SOURCES)

    @staticmethod
    def set_output(rng, transform):
        if transform.name == "first":
            if "p" in transform.outputs:
                del transform.outputs["p"]
            else:
                transform.outputs["p"] = Output("O2")

    @staticmethod
    def set_branch(rng, transform):
        spec = rng.choice(list(transform.inputs.values()))
        if rng.random() < 0.5:
            spec.branch = rng.choice((None, "main", *BRANCHES))
        elif transform.branch == "main":
            transform.branch = rng.choice(BRANCHES)
            transform.fallbacks = rng.choice((("main",), ("alt", "main")))
        else:
            transform.branch, transform.fallbacks = "main", ()

    @staticmethod
    def set_command(rng, transform):
        transform.command = ("sh", "cmd", rng.choice("123"))

    # --------------------------------------------------------------- runs

    def do_plan(self, rng):
        for transform in self.transforms:
            self.check_plan(rng, transform)

    def job_of(self, rng, plan):
        """What the command does; the model's plan says what it would see."""
        job = {"writes": {}, "code": 0, "aborts": [], "keep": False,
               "allow_empty": rng.random() < 0.3}
        if rng.random() < 0.08:
            job["code"], job["keep"] = 3, rng.random() < 0.5
        elif rng.random() < 0.12:
            job["aborts"] = [rng.choice(("*", *plan.outputs))]
        for alias, out in plan.outputs.items():
            base = view(out.head)
            way = rng.choice(("copy", "copy", "copy", "fixed", "some",
                              "none"))
            files = {}
            if way == "copy":
                files = {p: File(self.text()) for at in plan.inputs.values()
                         for p in at.views["added"]}
                if paths_conflict(files):
                    del files[FILE_AND_DIRECTORY]
            elif way == "fixed":
                files = {"a": File(self.text())}
            elif way == "some":
                files = self.some_files(rng, base)
            if out.type == APPEND and rng.random() < 0.7:
                files = {p: f for p, f in files.items() if p not in base}
            job["writes"][alias] = files
        return job

    def do_run(self, rng):
        transform = rng.choices(self.transforms, (12, 7, 1))[0]
        flags = "".join(f for f, p in (("f", .2), ("s", .03), ("p", .05),
                                       ("k", .06)) if rng.random() < p)
        try:
            plan = self.model.plan(transform, "f" in flags, "s" in flags,
                                   transform.command)
        except Refused as refused:
            job = {"writes": {}, "code": 0, "aborts": [], "keep": False,
                   "allow_empty": False}
            compare.failure("run", refused,
                            self.real.run(transform, flags, job), 125)
            return
        if "p" in flags or plan.decision != "incremental" or any(
                o.type == SNAPSHOT for o in plan.outputs.values()):
            flags = flags.replace("k", "")
        job = self.job_of(rng, plan)
        if "k" in flags:           # no command runs
            job.update(writes={}, code=0, aborts=[], keep=False)
        reply = self.real.run(transform, flags, job)
        for out in plan.outputs.values():
            self.touched.add((out.dataset.name, out.branch))
        self.follow_run("run of " + transform.name, plan, flags, job, reply)

    def do_mount(self, rng):
        if not self.real.can_mount:
            return
        transform = copy.deepcopy(rng.choice(self.transforms))
        transform.command = ()
        flags = "s" if rng.random() < 0.05 else ""
        try:
            plan = self.model.plan(transform, True, bool(flags), ())
        except Refused:
            return
        job = self.job_of(rng, plan)
        job.update(code=0, keep=False)
        reply = self.real.run_mounted(transform, flags, job)
        for out in plan.outputs.values():
            self.touched.add((out.dataset.name, out.branch))
        if plan.decision in ("refused", "error") and "exit" in reply:
            same("mount: exit", 4 if self.is_locked(plan) and
                 reply["exit"] == 4 else 5, reply["exit"])
            return
        self.follow_run("mount", plan, flags, job, reply)

    def follow_run(self, what, plan, flags, job, reply):
        if self.is_locked(plan):
            word = (reply.get("error") or {}).get("code")
            runs = plan.decision in ("incremental", "snapshot")
            if word == "open-transaction" or (runs and "p" not in flags):
                require(word == "open-transaction",
                        "%s beside an open transaction: %s", what, reply)
                return
        decision = compare.plan(what, plan, reply)
        if decision not in ("incremental", "snapshot"):
            require(not reply.get("build"), "%s: a build of nothing: %s",
                    what, reply)
            return
        plan.decision = decision
        build = self.model.start_build(plan, "p" in flags, "k" in flags)
        compare.views(what, build, reply)
        for alias, files in job["writes"].items():
            build.staged[alias] = dict(files)
        compare.live(what, build, reply)
        build.dropped = {a for a in job["aborts"] if a in plan.outputs}
        if "p" in flags:
            return
        build.real = compare.number(reply.get("build"))
        require(build.real, "%s: no build number: %s", what, reply)
        self.end_run(what, build, job, reply)

    @staticmethod
    def is_locked(plan):
        for out in plan.outputs.values():
            at = out.dataset.branches.get(out.branch)
            if at and at.open:
                return True
        return False

    def end_run(self, what, build, job, reply):
        if job["code"]:
            if job["keep"]:
                self.open_builds.append(build)
            else:
                self.model.abort_build(build, failed=True)
            require(reply.get("exit", job["code"]) == job["code"],
                    "%s: exit %s", what, reply.get("exit"))
            return
        if "*" in job["aborts"]:
            self.model.abort_build(build)
            require("error" not in reply, "%s: %s", what, reply)
            return
        self.commit_build(what, build, job["allow_empty"], reply)
        if build.status == "open":
            self.open_builds.append(build)

    def commit_build(self, what, build, allow_empty, reply):
        try:
            self.model.commit_build(build, allow_empty)
        except Refused as refused:
            compare.failure(what, refused, reply, 125 if "run" in what else 4)
            return
        require("error" not in reply, "%s: %s", what, reply.get("error"))
        compare.committed(what, build, reply)

    def do_end(self, rng):
        if not self.open_builds:
            return
        build = rng.choice(self.open_builds)
        newer = [b for b in self.model.builds
                 if b.number > build.number and b.status == "committed"
                 and b.transform.name == build.transform.name]
        how = "commit" if rng.random() < 0.6 and not newer else "abort"
        flags = "a" if rng.random() < 0.5 and how == "commit" else ""
        reply = self.real.build_end(build.real, how, flags)
        for out in build.plan.outputs.values():
            self.touched.add((out.dataset.name, out.branch))
        if how == "commit":
            self.commit_build("build commit", build, bool(flags), reply)
        else:
            self.model.abort_build(build)
            require("error" not in reply, "build abort: %s", reply)
        if build.status != "open":
            self.open_builds.remove(build)


def make_valid(transform, field):
    """Undo what the definition rules forbid beside the field just set."""
    limited = any(i.limit for i in transform.inputs.values())
    if field == "v2_semantics" and not transform.v2_semantics:
        transform.allow_user_deletes = False
        for spec in transform.inputs.values():
            spec.limit = 0
    elif limited or transform.allow_user_deletes:
        transform.v2_semantics = True
    if transform.strict_append:
        for spec in transform.outputs.values():
            if spec.write_mode == "replace":
                spec.write_mode = None


__all__ = ["History", "Mismatch", "draw"]

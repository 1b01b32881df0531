#!/usr/bin/env python3
"""Check the model against what the rulebook says literally: the 24 traces of
its section 9 and the tables 2.1, 2.2, 3 and 4.

    test_model.py [WORD]...     only tests whose name holds one of the words
"""

import sys
import traceback

sys.dont_write_bytecode = True

from model import (  # noqa: E402
    APPEND, DELETE, SNAPSHOT, UPDATE, File, Input, Output, Refused, Store,
    Transform, view)

TESTS = []


def test(function):
    TESTS.append((function.__name__, function))
    return function


def eq(want, got):
    assert want == got, "want %r, got %r" % (want, got)


class World:
    """Datasets I, J and outputs O, P of transform f, in the notation of the
    rulebook: do("I", "S{a} A{b,c} U{a} D{b} R{c}"), R being a DELETE of
    retention.  Each written file has new content; U{a=} keeps the bytes."""

    def __init__(self, **settings):
        self.store = Store()
        for name in "IJOPG":
            self.store.create(name)
        self.f = Transform("f", {"i": Input("I")}, {"o": Output("O")},
                           **settings)
        self.n = 0

    def text(self):
        self.n += 1
        return "text %d" % self.n

    def do(self, name, log, branch="main"):
        txn = None
        for word in log.split():
            kind, paths = word[0], word[2:-1].split(",") if word[2:-1] else []
            if kind in "DR":
                origin = "retention" if kind == "R" else "user"
                txn = self.store.begin(name, DELETE, origin, branch)
                for path in paths:
                    self.store.unput(txn, path)
                self.store.commit_txn(txn)
                continue
            type_ = {"S": SNAPSHOT, "A": APPEND, "U": UPDATE}[kind]
            now = view(self.store.head(name, branch))
            files = {p.rstrip("="): now[p[:-1]].files[p[:-1]]
                     if p.endswith("=") else File(self.text()) for p in paths}
            txn = self.store.commit(name, type_, files, branch=branch,
                                    rewrite=True)
        return txn

    def plan(self, **options):
        return self.store.plan(self.f, **options)

    def build(self, write=None, force=False, drop=(), **options):
        """Run f, which copies `added` of its inputs to each output unless
        `write` says what: alias -> paths."""
        plan, build = self.store.begin_build(self.f, force, **options)
        if build is None:
            return plan, None
        for alias in self.f.outputs:
            paths = write.get(alias, ()) if write is not None else [
                p for i in plan.inputs.values() for p in i.views["added"]]
            for path in paths:
                build.stage(alias, path, self.text())
        build.dropped |= set(drop)
        self.store.commit_build(build)
        return plan, build

    def out(self, name="O", branch="main"):
        return "".join(sorted(view(self.store.head(name, branch))))

    def last(self, name="O", branch="main"):
        """Type and files of the newest transaction, as `U{a,b}`."""
        txn = self.store.head(name, branch)
        return "%s{%s}" % (txn.type[0], ",".join(sorted(txn.files)))


def names(plan, alias="i"):
    """added/previous/current as the rulebook writes them."""
    views = plan.inputs[alias].views
    return "/".join("".join(sorted(views[k]))
                    for k in ("added", "previous", "current"))


def is_(plan, decision, codes="", views=None, alias="i"):
    eq((decision, codes), (plan.decision, " ".join(plan.codes())))
    if views is not None:
        eq(views, names(plan, alias))


def refuses(word, function, *args, **more):
    try:
        function(*args, **more)
    except Refused as refused:
        eq(word, refused.word)
    else:
        raise AssertionError("not refused: %s" % word)


# ------------------------------------------------------------- section 9

@test
def trace_01_first_then_append():
    w = World()
    w.do("I", "S{a}")
    is_(w.build()[0], "snapshot", "first-build", "a//a")
    eq("S{a}", w.last())
    w.do("I", "A{b}")
    is_(w.build()[0], "incremental", "", "b/a/ab")
    eq(("U{b}", "ab"), (w.last(), w.out()))


@test
def trace_02_nothing_new():
    w = World()
    w.do("I", "S{a} A{b}")
    w.build()
    is_(w.build()[0], "fresh")
    is_(w.build(force=True)[0], "incremental", "", "/ab/ab")
    eq(("U{}", "ab"), (w.last(), w.out()))


def world_of_trace_03(**settings):
    w = World(**settings)
    w.do("I", "S{a}")
    w.build()
    w.do("I", "A{b}")
    w.build()
    w.do("I", "U{c}")
    is_(w.build()[0], "incremental", "", "c/ab/abc")
    return w


@test
def trace_03_additive_and_overwriting_update():
    w = world_of_trace_03()
    w.do("I", "U{a}")
    is_(w.build()[0], "snapshot", "input-modified", "abc//abc")
    eq("S{a,b,c}", w.last())


@test
def trace_04_require():
    w = world_of_trace_03(require_incremental=True)
    w.do("I", "U{a}")
    before = w.store.head("O")
    for _ in range(2):
        is_(w.build()[0], "refused", "input-modified")
        assert w.store.head("O") is before
    w.f.semantic_version = 2
    is_(w.build()[0], "snapshot", "input-modified semantic-version")
    eq("S{a,b,c}", w.last())


@test
def trace_05_user_delete():
    w = World(v2_semantics=True)
    w.do("I", "S{a,b}")
    w.build()
    w.do("I", "D{b}")
    is_(w.plan(), "snapshot", "input-removed-user")
    w.f.allow_user_deletes = True
    is_(w.build()[0], "incremental", "", "/ab/a")
    eq("ab", w.out())


@test
def trace_06_retention_delete():
    for ret, usr, decision in ((0, 0, "snapshot"), (1, 0, "incremental"),
                               (0, 1, "snapshot"), (1, 1, "incremental")):
        w = World(v2_semantics=True, allow_retention=bool(ret),
                  allow_user_deletes=bool(usr))
        w.do("I", "S{a,b}")
        w.build()
        w.do("I", "R{b}")
        eq(decision, w.plan().decision)


@test
def trace_07_comes_and_goes():
    w = World()
    w.do("I", "S{a}")
    w.build()
    w.do("I", "A{d} D{d}")
    is_(w.build()[0], "incremental", "", "/a/a")
    w.do("I", "A{d}")
    last = w.do("I", "U{d}")
    plan, _ = w.build()
    is_(plan, "incremental", "", "d/a/ad")
    eq({"d": last}, plan.inputs["i"].views["added"])


@test
def trace_08_snapshot_input():
    w = World()
    w.do("I", "S{a}")
    w.build()
    w.do("I", "S{z}")
    is_(w.plan(), "snapshot", "input-snapshot", "z//z")
    w.f.inputs["i"].snapshot = True
    is_(w.build()[0], "incremental", "", "z//z")
    eq("U{z}", w.last())
    w.f.inputs["i"].snapshot = False
    w.do("I", "S{y}")
    w.build()
    eq("S{y}", w.last())


@test
def trace_09_history():
    w = World()
    w.f.inputs["i"].snapshot = True
    for day, want in (("1", "1x"), ("2", "1x2x"), ("3", "1x2x3x")):
        w.do("I", "S{x}")
        w.build({"o": [day + "x"]})
        eq(want, w.out())
        is_(w.build()[0], "fresh")


@test
def trace_10_strict_append():
    w = World(strict_append=True)
    w.do("I", "S{a}")
    w.build({"o": ["out"]})
    eq("S{out}", w.last())
    w.do("I", "A{b}")
    refuses("strict-append-collision", w.build, {"o": ["out"]})
    eq("S{out}", w.last())
    w.store.abort_build(w.store.builds[-1])
    g = Transform("g", {"i": Input("O")}, {"o": Output("G")})
    w.store.commit_build(w.store.begin_build(g)[1])
    w.f.strict_append = False
    w.build({"o": ["out"]})
    eq("U{out}", w.last())
    is_(w.store.plan(g), "snapshot", "input-modified")


@test
def trace_11_limits():
    w = World(v2_semantics=True)
    w.f.inputs["i"].limit = 3
    w.do("I", "S{A} A{B} A{C}")
    is_(w.build()[0], "snapshot", "first-build", "ABC//ABC")
    w.do("I", "A{D} A{E} A{F} A{G} A{H} A{I} A{J}")
    for want in ("DEF/ABC/ABCDEF", "GHI/ABCDEF/ABCDEFGHI",
                 "J/ABCDEFGHI/ABCDEFGHIJ"):
        is_(w.build()[0], "incremental", "", want)
    is_(w.build()[0], "fresh")
    w.do("I", "U{x}")
    is_(w.plan(), "error", "limit-bad-transaction")
    w.f.semantic_version = 2
    is_(w.plan(), "error", "limit-bad-transaction semantic-version")


@test
def trace_12_one_output_aborted():
    w = World()
    w.f.outputs["p"] = Output("P")
    w.do("I", "S{a}")
    w.build()
    w.do("I", "A{b}")
    w.build(drop=["p"])
    eq(("ab", "a"), (w.out("O"), w.out("P")))
    is_(w.plan(), "snapshot", "provenance-inconsistent")
    w.f.require_incremental = True
    is_(w.plan(), "refused", "provenance-inconsistent")


@test
def trace_13_output_touched():
    w = World()
    w.do("I", "S{a}")
    w.build()
    w.do("O", "A{h}")
    w.f.require_incremental = True
    is_(w.build()[0], "refused", "output-foreign-commit")
    eq("ah", w.out())
    w.f.require_incremental = False
    is_(w.build()[0], "snapshot", "output-foreign-commit")
    eq("a", w.out())


@test
def trace_14_retention_on_output():
    w = World()
    w.do("I", "S{a,b}")
    w.build()
    w.do("O", "R{b}")
    w.do("I", "A{c}")
    is_(w.plan(), "snapshot", "output-retention-delete")
    w.f.allow_retention = True
    plan, build = w.build()
    is_(plan, "incremental", "", "c/ab/abc")
    eq(["a"], sorted(view(build.plan.outputs["o"].head)))
    eq("ac", w.out())


@test
def trace_15_output_joins():
    w = World()
    w.do("I", "S{a}")
    w.build()
    w.f.outputs["p"] = Output("P")
    w.do("I", "A{b}")
    plan, build = w.build()
    is_(plan, "incremental", "", "b/a/ab")
    eq(("ab", "b"), (w.out("O"), w.out("P")))
    eq({}, build.output_view("p", "previous"))


@test
def trace_16_input_joins():
    w = World()
    w.do("I", "S{a}")
    w.do("J", "S{x} A{y}")
    w.build()
    w.f.inputs["j"] = Input("J")
    w.do("I", "A{b}")
    plan, _ = w.build()
    is_(plan, "incremental", "", "b/a/ab")
    eq("xy//xy", names(plan, "j"))


@test
def trace_17_branch():
    w = World()
    w.do("I", "S{a}")
    for path in "bc":
        w.build()
        w.do("I", "A{%s}" % path)
    w.build()
    w.store.create_branch("I", "dev", w.store.head("I"))
    w.do("I", "A{d}", "dev")
    w.f.branch, w.f.fallbacks = "dev", ("main",)
    is_(w.build()[0], "incremental", "", "d/abc/abcd")
    eq(("abcd", "abc"), (w.out(branch="dev"), w.out()))
    w.f.branch, w.f.fallbacks = "main", ()
    is_(w.plan(), "fresh")


@test
def trace_18_head_moved_back():
    w = World()
    first = w.do("I", "S{a}")
    w.do("I", "A{b}")
    w.build()
    w.store.reset_branch("I", "main", first)
    is_(w.build()[0], "error", "branch-order")
    w.f.semantic_version = 2
    is_(w.plan(), "snapshot", "semantic-version")
    w.f.semantic_version = 1
    w.do("I", "A{c}")
    is_(w.plan(), "error", "processed-transaction-not-in-view")
    w.do("I", "S{q}")
    is_(w.plan(), "snapshot", "input-snapshot")


@test
def trace_19_output_rolled_back():
    w = World()
    w.do("I", "S{a}")
    w.build()
    back = w.store.head("O")
    for path in "bc":
        w.do("I", "A{%s}" % path)
        w.build()
    w.store.reset_branch("O", "main", back)
    is_(w.build()[0], "incremental", "", "bc/a/abc")


@test
def trace_20_job_fails():
    w = World()
    w.do("I", "S{a}")
    w.build()
    w.do("I", "A{b}")
    _, build = w.store.begin_build(w.f)
    build.stage("o", "b", "half")
    w.store.abort_build(build, failed=True)
    eq("a", w.out())
    w.do("I", "A{c}")
    is_(w.build()[0], "incremental", "", "bc/a/abc")


@test
def trace_21_merge_and_replace():
    w = World()
    g = Transform("g", {"i": Input("O")}, {"o": Output("G")})
    w.do("I", "S{a}")
    w.build({"o": ["sum"]})
    w.store.commit_build(w.store.begin_build(g)[1])
    w.f.outputs["o"].write_mode = "replace"
    w.do("I", "A{b}")
    plan, build = w.build({"o": ["sum"]})
    is_(plan, "incremental")
    eq(["sum"], sorted(build.output_view("o", "previous")))
    eq("S{sum}", w.last())
    w.do("I", "A{c}")
    is_(w.plan(), "incremental")
    is_(w.store.plan(g), "snapshot", "input-snapshot")


@test
def trace_22_replace_of_nothing():
    w = World()
    w.f.outputs["o"].write_mode = "replace"
    w.do("I", "S{a}")
    w.build()
    w.do("I", "A{b}")
    refuses("empty-replace", w.build, {"o": []})
    eq("a", w.out())
    w.store.commit_build(w.store.builds[-1], allow_empty=True)
    eq(("S{}", ""), (w.last(), w.out()))
    w.do("O", "A{x}")
    _, build = w.build(drop=["o"])
    eq(("aborted", "x"), (build.status, w.out()))


@test
def trace_23_version():
    w = World()
    w.do("I", "S{a}")
    w.build()
    is_(w.plan(force=True), "incremental")
    for version in (2, 1):
        w.f.semantic_version = version
        is_(w.build()[0], "snapshot", "semantic-version")
        is_(w.plan(force=True), "incremental")


@test
def trace_24_crash_before_commit():
    w = World()
    w.do("I", "S{a}")
    w.build()
    w.do("I", "A{b}")
    _, orphan = w.store.begin_build(w.f)
    orphan.stage("o", "b", "lost")
    eq("a", w.out())
    is_(w.build()[0], "incremental", "", "b/a/ab")
    refuses("branch-moved", w.store.commit_build, orphan)


# ----------------------------------------------------- section 2.1, table a

TABLE_A = """
1   -             I I I I I I ok  -     -
2   A{n}          I I I I I I ok  n     -
3   A{n}_A{m}     I I I I I I ok  mn    -
4   A{}           I I I I I I ok  -     -
5   U{n}          I I I I I F ok  n     -
6   U{x}          N N N N I F no  -     input-modified
7   U{x=}         N N N N I F no  -     input-modified
8   U{x,n}        N N N N I F no  -     input-modified
9   A{n}_U{n}     I I I I I F ok  n     -
10  D{x}          N N I I I F no  -     input-removed-user
11  R{x}          N I N I I F no  -     input-removed-retention
12  D{x}_R{y}     N N N I I F no  -     input-removed-retention_input-removed-user
13  D{x}_A{n}     N N I I I F no  n     input-removed-user
14  A{n}_D{n}     I I I I I F ok  -     -
15  D{x}_A{x}     N N N N I F no  -     input-modified
16  D{}           I I I I I F ok  -     -
16b D{q}          I I I I I F ok  -     -
17  S{q}          N N N N I N no  -     input-snapshot
18  S{x,y}        N N N N I N no  -     input-snapshot
19  S{}           N N N N I N no  -     input-snapshot
20  S{q}_A{n}     N N N N I N no  -     input-snapshot
"""


def settings_of(column):
    return {"none": {}, "ret": {"allow_retention": True},
            "usr": {"allow_user_deletes": True},
            "both": {"allow_retention": True, "allow_user_deletes": True},
            "snap": {}, "lim": {}}[column]


@test
def table_a_rows_1_to_20():
    long = {"I": "incremental", "N": "snapshot", "F": "error"}
    for row in TABLE_A.strip().splitlines():
        number, log, *cells, require, added, codes = row.split()
        log = log.replace("-", "").replace("_", " ")
        for column, cell in zip(("none", "ret", "usr", "both", "snap", "lim"),
                                cells):
            for start in ("S{x,y}", "A{x,y}"):
                w = World(v2_semantics=True, **settings_of(column))
                w.f.inputs["i"].snapshot = column == "snap"
                w.f.inputs["i"].limit = 2 if column == "lim" else 0
                w.do("I", start)
                w.build()
                w.do("I", log)
                plan = w.plan(force=True)
                at = "row %s, %s" % (number, column)
                assert plan.decision == long[cell], (at, plan.decision)
                if cell == "I" and column not in ("snap", "lim"):
                    eq(added.replace("-", ""), names(plan).split("/")[0])
                if column == "none":
                    eq("" if codes == "-" else codes,
                       "_".join(plan.codes()))
                    w.f.require_incremental = True
                    eq("refused" if require == "no" else "incremental",
                       w.plan(force=True).decision)


@test
def row_19_empty_snapshot_wipes_only_when_allowed():
    w = World()
    w.do("I", "S{x}")
    w.build()
    w.do("I", "S{}")
    refuses("empty-replace", w.build)
    w.store.commit_build(w.store.builds[-1], allow_empty=True)
    eq("", w.out())


@test
def row_21_open_and_aborted_only():
    w = World()
    w.do("I", "S{x}")
    w.build()
    txn = w.store.begin("I", UPDATE)
    w.store.put(txn, "x", "new")
    is_(w.plan(), "fresh")
    w.store.abort_txn(txn)
    is_(w.plan(), "fresh")


@test
def row_24_update_before_pend():
    for log in ("S{x} U{n}", "S{x} D{x}", "U{x}"):
        w = World(v2_semantics=True)
        w.do("I", log)
        w.build({"o": ["k"]})
        w.do("I", "A{z}")
        is_(w.plan(), "incremental")
        w.f.inputs["i"].limit = 5
        is_(w.plan(), "error", "limit-bad-transaction")


# -------------------------------------------------- section 2.1, table b

@test
def rows_25_26_new_output_branch():
    w = World()
    w.do("I", "S{a}")
    w.build()
    w.do("I", "A{b}")
    w.f.branch, w.f.fallbacks = "dev", ("main",)
    is_(w.plan(), "incremental", "", "b/a/ab")
    w.f.inputs["i"].branch = "main"
    w.f.fallbacks = ()
    is_(w.plan(), "snapshot", "first-build", "ab//ab")
    w.f.require_incremental = True
    is_(w.plan(), "snapshot", "first-build")


@test
def rows_27_28_other_branch_of_input():
    w = World()
    first = w.do("I", "S{a}")
    w.do("I", "A{b}")
    w.build()
    w.store.create_branch("I", "ahead", w.store.head("I"))
    w.do("I", "A{c}", "ahead")
    w.f.inputs["i"].branch = "ahead"
    is_(w.plan(), "incremental", "", "c/ab/abc")
    w.store.create_branch("I", "side", first)
    w.do("I", "A{c}", "side")
    w.f.inputs["i"].branch = "side"
    is_(w.plan(), "error", "processed-transaction-not-in-view")
    w.do("I", "S{z}", "side")
    is_(w.plan(), "snapshot", "input-snapshot")
    w.f.inputs["i"].snapshot = True
    is_(w.plan(), "incremental")


@test
def row_30_moved_back_but_not_behind_pend():
    w = World()
    w.do("I", "S{a}")
    w.build()
    to = w.do("I", "A{b}")
    w.do("I", "U{a}")
    w.store.reset_branch("I", "main", to)
    is_(w.plan(), "incremental", "", "b/a/ab")


@test
def row_32_let_outs_cure_moved_heads():
    w = World()
    first = w.do("I", "S{a}")
    w.do("I", "A{b}")
    w.build()
    w.store.reset_branch("I", "main", first)
    is_(w.plan(force_snapshot=True), "snapshot", "forced")
    w.f.v2_semantics = True
    is_(w.plan(), "snapshot", "v2-changed")
    w.f.v2_semantics = False
    w.do("O", "A{h}")
    is_(w.plan(), "snapshot", "output-foreign-commit")


# --------------------------------------------- section 2.1, tables c and d

@test
def rows_35_to_38_inputs_come_and_go():
    w = World()
    w.do("I", "S{a}")
    w.do("J", "S{x} U{y}")
    w.build()
    w.f.inputs["j"] = Input("J")
    is_(w.build()[0], "incremental", "", "xy//xy", "j")
    j = w.f.inputs.pop("j")
    is_(w.build()[0], "incremental")
    w.f.inputs["j"] = j
    is_(w.build({"o": []})[0], "incremental", "", "xy//xy", "j")


@test
def row_39_swapped_input():
    w = World()
    w.do("I", "S{a}")
    w.do("J", "S{x}")
    w.build()
    w.f.inputs["i"].dataset = "J"
    is_(w.plan(), "snapshot", "input-swapped", "x//x")
    w.f.inputs = {"k": Input("J")}
    is_(w.plan(), "incremental", "", "x//x", "k")


@test
def rows_40_41_snapshot_kind_changes():
    w = World()
    w.do("I", "S{a}")
    w.build()
    w.f.inputs["i"].snapshot = True
    w.do("I", "U{a}")
    is_(w.build({"o": ["1"]})[0], "incremental", "", "a//a")
    w.f.inputs["i"].snapshot = False
    w.do("I", "A{b}")
    is_(w.plan(), "incremental", "", "b/a/ab")
    w.do("I", "S{c}")
    is_(w.plan(), "snapshot", "input-snapshot")


@test
def rows_42_to_44_73_74_definitions():
    ok = {"i": Input("I")}, {"o": Output("O")}
    for word, inputs, outputs, settings in (
            ("no-input", {}, ok[1], {}),
            ("no-output", ok[0], {}, {}),
            ("input-is-output", {"i": Input("O")}, ok[1], {}),
            ("duplicate-alias", {"a-b": Input("I")}, {"A_b": Output("O")}, {}),
            ("duplicate-output", ok[0], {"o": Output("O"), "p": Output("O")},
             {}),
            ("needs-v2", *ok, {"allow_user_deletes": True}),
            ("needs-v2", {"i": Input("I", limit=1)}, ok[1], {}),
            ("bad-limit", {"i": Input("I", limit=-1)}, ok[1],
             {"v2_semantics": True}),
            ("limit-on-snapshot-input",
             {"i": Input("I", snapshot=True, limit=1)}, ok[1],
             {"v2_semantics": True}),
            ("strict-append-replace", ok[0], {"o": Output("O", "replace")},
             {"strict_append": True})):
        refuses(word, Transform("f", inputs, outputs, **settings).check)


@test
def row_47_unbuilt_output_lets_out():
    w = World(require_incremental=True)
    w.do("I", "S{a}")
    w.build()
    w.do("I", "U{a}")
    is_(w.plan(), "refused", "input-modified")
    w.f.outputs["p"] = Output("P")
    is_(w.plan(), "snapshot", "input-modified")


@test
def retention_deletes_alone_are_no_build():
    w = World(require_incremental=True, allow_retention=True)
    w.do("I", "S{a}")
    w.do("O", "R{}")
    is_(w.plan(), "snapshot", "first-build")
    w.f.allow_retention = False
    is_(w.plan(), "refused", "output-retention-delete")


@test
def rows_48_61_built_by_another():
    w = World(require_incremental=True)
    w.do("I", "S{a}")
    w.build()
    w.f.name = "g"
    is_(w.plan(), "refused", "output-foreign-commit")
    w.f.require_incremental = False
    w.build()
    w.f.name = "f"
    is_(w.plan(), "snapshot", "output-foreign-commit")


@test
def rows_50_54_rolled_back_or_aborted_foreign():
    w = World()
    w.do("I", "S{a}")
    w.build()
    own = w.store.head("O")
    w.do("O", "A{h}")
    w.store.reset_branch("O", "main", own)
    is_(w.plan(), "fresh")
    w.store.abort_txn(w.store.begin("O", UPDATE))
    is_(w.plan(), "fresh")


@test
def rows_51_52_deletes_on_output():
    for log, settings, decision, codes in (
            ("D{a}", {}, "snapshot", "output-user-delete"),
            ("D{a}", {"allow_user_deletes": True}, "snapshot",
             "output-user-delete"),
            ("R{a}", {}, "snapshot", "output-retention-delete"),
            ("R{a}", {"allow_retention": True}, "incremental", ""),
            ("R{a} D{b} A{h}", {}, "snapshot",
             "output-foreign-commit output-retention-delete "
             "output-user-delete")):
        w = World(v2_semantics=True, **settings)
        w.do("I", "S{a,b}")
        w.build()
        w.do("O", log)
        is_(w.plan(force=True), decision, codes)


@test
def row_55_equal_ranges_are_consistent():
    w = World()
    w.f.outputs["p"] = Output("P")
    w.do("I", "S{a}")
    w.build()
    w.build(force=True, drop=["p"])
    is_(w.plan(force=True), "incremental")


@test
def rows_56_to_60_after_other_runs():
    w = World()
    w.f.outputs["p"] = Output("P")
    w.do("I", "S{a}")
    w.build()
    w.do("I", "A{b}")
    w.build(drop=["o", "p"])
    is_(w.plan(), "incremental", "", "b/a/ab")
    del w.f.outputs["p"]
    is_(w.build()[0], "incremental", "", "b/a/ab")


@test
def rows_62_to_66_version_and_v2():
    w = World(require_incremental=True)
    w.do("I", "S{a}")
    w.build()
    w.f.semantic_version = -1
    is_(w.plan(), "snapshot", "semantic-version")
    w.f.semantic_version = 1
    w.f.v2_semantics = True
    is_(w.plan(), "refused", "v2-changed")
    w.f.semantic_version = 2
    is_(w.build()[0], "snapshot", "semantic-version v2-changed")
    w.f.v2_semantics = False
    is_(w.plan(), "refused", "v2-changed")


@test
def rows_67_to_72_settings():
    w = World(v2_semantics=True)
    w.do("I", "S{a,b}")
    w.build()
    w.f.strict_append = True
    is_(w.plan(), "incremental")
    w.f.strict_append = False
    w.f.require_incremental = True
    is_(w.plan(), "incremental")
    is_(w.plan(force_snapshot=True), "snapshot", "forced")
    w.do("I", "D{b}")
    is_(w.plan(), "refused", "input-removed-user")
    w.f.allow_user_deletes = True
    is_(w.plan(), "incremental")


@test
def row_70_other_command_is_stale():
    w = World()
    w.f.command = ("sh", "1")
    w.do("I", "S{a}")
    w.build()
    is_(w.plan(command=("sh", "1")), "fresh")
    is_(w.plan(), "fresh")
    is_(w.plan(command=("sh", "2")), "incremental")


# ----------------------------------------------------------- section 2.2

@test
def table_22_types():
    for incremental, strict, mode, want in (
            (1, 0, None, UPDATE), (1, 0, "modify", UPDATE),
            (1, 0, "append", APPEND), (1, 0, "replace", SNAPSHOT),
            (1, 1, None, APPEND), (1, 1, "modify", APPEND),
            (1, 1, "append", APPEND), (0, 0, None, SNAPSHOT),
            (0, 1, None, SNAPSHOT), (0, 0, "replace", SNAPSHOT),
            (0, 0, "modify", UPDATE), (0, 1, "modify", UPDATE),
            (0, 0, "append", APPEND)):
        w = World()
        w.do("I", "S{a}")
        w.build()
        w.f.strict_append = bool(strict)
        w.f.outputs["o"].write_mode = mode
        w.do("I", "A{b}" if incremental else "S{b}")
        plan, build = w.build({"o": ["b"]})
        eq((bool(incremental), want),
           (plan.is_incremental, build.committed["o"].type))
        eq("b" if want == SNAPSHOT else "ab", w.out())


@test
def table_22_collisions():
    for strict, mode, word in ((0, "append", "append-collision"),
                               (1, None, "strict-append-collision")):
        w = World()
        w.do("I", "S{a,b}")
        w.build()
        w.f.strict_append = bool(strict)
        w.f.outputs["o"].write_mode = mode
        w.do("I", "A{c}")
        refuses(word, w.build, {"o": ["b", "c"]})
        eq("ab", w.out())


@test
def equal_files_are_left_out():
    w = World()
    first = w.store.commit("I", APPEND, {"a": "1", "b": "1"})
    same = w.store.commit("I", UPDATE, {"a": "1", "b": File("1", 0o755)})
    eq(["b"], sorted(same.files))
    w.store.commit("I", UPDATE, {"a": "1"}, rewrite=True)
    assert view(w.store.head("I"))["a"] is not first
    eq(None, w.store.commit("I", UPDATE, {"a": "1"}, skip_empty=True))


# -------------------------------------------------------- sections 3 and 4

@test
def table_3_modified_and_removed():
    w = World(v2_semantics=True, allow_user_deletes=True)
    w.do("I", "S{a,b}")
    w.build()
    w.do("I", "D{b} A{c}")
    views = w.plan().inputs["i"].views
    eq((["b"], []), (sorted(views["removed"]), sorted(views["modified"])))
    w.do("I", "U{a}")
    plan = w.plan()
    is_(plan, "snapshot", "input-modified", "ac//ac")
    eq({}, plan.inputs["i"].views["removed"])


@test
def table_3_several_limits():
    w = World(v2_semantics=True)
    w.f.inputs = {"i": Input("I", limit=1), "j": Input("J", limit=2)}
    w.do("I", "S{a} A{b} A{c}")
    w.do("J", "S{x} A{y}")
    plan, _ = w.build()
    eq(("a//a", "xy//xy"), (names(plan), names(plan, "j")))
    plan, _ = w.build()
    eq(("b/a/ab", "/xy/xy"), (names(plan), names(plan, "j")))
    is_(w.plan(), "incremental", "", "c/ab/abc")


@test
def table_4_rows():
    for mode, incremental, before, after, previous in (
            ("modify", 1, "ab", "abc", "ab"),
            ("modify", 0, "ab", "abc", ""),
            ("append", 1, "ab", "abc", "ab"),
            ("replace", 1, "", "bc", "ab"),
            ("replace", 0, "", "bc", "")):
        w = World()
        w.f.outputs["o"].write_mode = mode
        w.do("I", "S{a,b}")
        w.build()
        w.do("I", "A{c}" if incremental else "S{c}")
        _, build = w.store.begin_build(w.f)

        def see(*kinds):
            return ["".join(sorted(build.output_view("o", k)))
                    for k in kinds]
        eq([before, "", previous], see("current", "added", "previous"))
        written = "c" if mode == "append" else "bc"
        for path in written:
            build.stage("o", path, w.text())
        eq([after, written, previous], see("current", "added", "previous"))
        w.store.commit_build(build)
        eq(after, w.out())


@test
def rules_of_transactions():
    s = Store()
    s.create("I")
    s.commit("I", SNAPSHOT, {"A": "1", "B": "1"})
    s.commit("I", APPEND, {"C": "1"})
    s.commit("I", UPDATE, {"A": "2"})
    s.remove("I", ["B"])
    eq(["A", "C"], sorted(view(s.head("I"))))              # R12
    refuses("append-collision", s.commit, "I", APPEND, {"A": "3"})
    s.commit("I", APPEND, {"B": "2"})                      # R9
    txn = s.begin("I", APPEND)
    refuses("open-transaction", s.begin, "I")              # R3
    refuses("open-transaction", s.commit, "I", APPEND, {"z": "1"})
    s.put(txn, "z", "1")
    refuses("already-staged", s.put, txn, "z", "2")        # R15
    s.put(txn, "z", "2", overwrite=True)
    s.commit_txn(txn)
    refuses("not-open", s.commit_txn, txn)                 # R1
    s.commit("I", SNAPSHOT, {"D": "1"})
    eq(["D"], sorted(view(s.head("I"))))
    refuses("no-such-path", s.remove, "I", ["A"])


@test
def skip_moves_read_ends():
    w = World()
    w.do("I", "S{a}")
    w.build()
    w.do("I", "A{b}")
    _, build = w.store.begin_build(w.f, skip=True)
    w.store.commit_build(build)
    eq("U{}", w.last())
    w.do("I", "A{c}")
    is_(w.plan(), "incremental", "", "c/ab/abc")


@test
def empty_input_counts_as_new():
    w = World()
    w.do("J", "S{x}")
    w.f.inputs["j"] = Input("J")
    w.build()
    w.do("I", "U{a}")
    is_(w.plan(), "incremental", "", "a//a")


def main():
    words = sys.argv[1:]
    failed = passed = 0
    for name, function in TESTS:
        if words and not any(w in name for w in words):
            continue
        try:
            function()
        except Exception:                     # noqa: any failure is a failure
            failed += 1
            print("FAILED: %s" % name)
            traceback.print_exc(limit=-3, file=sys.stdout)
        else:
            passed += 1
            print("ok: %s" % name)
    print("%d passed, %d failed" % (passed, failed))
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())

/*
 * Table a: changes on an input that was read before, as histories (history.h).
 *
 * X(name, history, setup, want, codes): what is wanted comes from the rules,
 * not from the code.  Each row is judged under seven settings, one letter each:
 *   none, allow_retention, allow_user_deletes, both, the input a snapshot
 *   input, the input limited to 2 transactions, require_incremental
 * I incremental, F fresh (would be incremental), N snapshot, R refused,
 * E error, '.' not judged.  @codes: of the reasons under `none`.
 * x and y were read before; n, m and o are new.
 */
#ifndef INCR_DECIDE_ROWS_H
#define INCR_DECIDE_ROWS_H

/* clang-format off */
#define HISTORY_ROWS(X) \
X(row01_R44_nothing, "S{x,y} |", NULL, "FFFFFFF", "") \
X(row01_R44_nothing_forced, "S{x,y} |", world_forced, "IIIIIII", "") \
X(row02_R80_append, "S{x,y} | A{n}", NULL, "IIIIIII", "") \
X(row03_R80_appends, "S{x,y} | A{n} A{m} A{o}", NULL, "IIIIIII", "") \
X(row04_R16_R146_empty_append, "S{x,y} | A{}", NULL, "IIIIIII", "") \
X(row05_R85_Q2_additive_update, "S{x,y} | U{n}", NULL, "IIIIIEI", "") \
X(row06_R80_overwrite, "S{x,y} | U{x}", NULL, "NNNNIER", "input-modified") \
X(row07_R82_same_bytes, "S{x,y} | U{x}", NULL, "NNNNIER", "input-modified") \
X(row08_R80_mixed_update, "S{x,y} | U{x,n}", NULL, "NNNNIER", "input-modified") \
X(row09_R81_Q3_overwrites_unread, "S{x,y} | A{n} U{n}", NULL, "IIIIIEI", "") \
X(row10_R66_user_delete, "S{x,y} | D{x}", NULL, "NNIIIER", "input-removed-user") \
X(row11_R65_retention_delete, "S{x,y} | Dr{x}", NULL, "NINIIER", "input-removed-retention") \
X(row12_R65_R66_both_deletes, "S{x,y} | D{x} Dr{y}", NULL, "NNNIIER", \
	"input-removed-user input-removed-retention") \
X(row13_R66_delete_and_append, "S{x,y} | D{x} A{n}", NULL, "NNIIIER", "input-removed-user") \
X(row14_R81_Q3_comes_and_goes, "S{x,y} | A{n} D{n}", NULL, "IIIIIEI", "") \
X(row15_R83_Q4_delete_and_read, "S{x,y} | D{x} A{x}", NULL, "NNNNIER", "input-modified") \
X(row15_R83_Q4_retention_then_read, "S{x,y} | Dr{x} A{x}", NULL, "NNNNIER", "input-modified") \
X(row16_R81_empty_delete, "S{x,y} | D{}", NULL, "IIIIIEI", "") \
X(row16_R81_delete_of_absent, "S{x,y} | D{n}", NULL, "IIIIIEI", "") \
X(row17_R80_snapshot, "S{x,y} | S{z}", NULL, "NNNNINR", "input-snapshot") \
X(row18_R80_snapshot_same_paths, "S{x,y} | S{x,y}", NULL, "NNNNINR", "input-snapshot") \
X(row19_R80_empty_snapshot, "S{x,y} | S{}", NULL, "NNNNINR", "input-snapshot") \
X(row20_R80_snapshot_and_append, "S{x,y} | S{z} A{n}", NULL, "NNNNINR", "input-snapshot") \
X(row21_R2_open_or_aborted_only, "S{x,y} |", NULL, "FFFFFFF", "") \
X(row22_R51_swept_superseded, "S{x,y} |", NULL, "FFFFFFF", "") \
X(row23_R158_schema_only, "S{x,y} |", NULL, "FFFFFFF", "") \
X(row24_R137_Q19_update_before_pend, "S{x,y} U{z} | A{n}", NULL, "IIIIIEI", "") \
X(row24_R137_Q19_delete_before_pend, "S{x,y} D{x} | A{n}", NULL, "IIIIIEI", "") \
X(R25_R80_deletes_keep_the_start, "S{x} A{y} | D{y}", NULL, "NNIIIER", "input-removed-user") \
X(R23_R80_leading_run_without_snapshot, "A{x} A{y} | A{n}", NULL, "IIIIIII", "") \
X(R36_R80_snapshot_after_leading_run, "A{x} | S{x,n}", NULL, "NNNNINR", "input-snapshot") \
X(R84_blocks_behind_later_appends, "S{x,y} | U{x} A{n} A{m}", NULL, "NNNNIER", "input-modified") \
X(R145_snapshot_in_mid_catch_up, "S{x} A{y} | A{n} A{m} S{z}", NULL, "NNNNINR", "input-snapshot") \
X(R9_R81_deleted_before_and_appended, "S{x} D{x} | A{x}", NULL, "IIIIIEI", "") \
X(R56_user_after_retention_is_per_path, "S{x,y} | Dr{x} D{y}", NULL, "NNNIIER", \
	"input-removed-user input-removed-retention") \
X(removed_belongs_to_the_last_remover, "S{x,y} | D{x} A{x} Dr{x}", NULL, "NINII.R", \
	"input-removed-retention")
/* clang-format on */

#endif

/**
 * A backtest may be of objects that somebody chose, whatever the reaction says, and then has no window of days.
 */

/** The statements of this migration, in order. */
export const statements: ReadonlyArray<string> = [
  `alter table kb.backtests alter column days drop not null`,
  `alter table kb.backtests add column object_ids uuid[]`,
  `alter table kb.backtests add constraint backtests_chosen_by check ((days is null) <> (object_ids is null))`
]

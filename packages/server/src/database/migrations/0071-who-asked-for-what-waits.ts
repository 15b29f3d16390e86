/**
 * An entry that a person asked for says who, so that its run is theirs also where it waited for its place.
 */

/** The statements of this migration, in order. */
export const statements: ReadonlyArray<string> = [
  `alter table kb.agent_processing_log add column asked_by text`
]

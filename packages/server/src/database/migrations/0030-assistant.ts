/**
 * A project remembers the TodoAssistant that was made for it, whatever has become of it since.
 */

/** The statements of this migration, in order. */
export const statements: ReadonlyArray<string> = [
  // Null: there has never been one.
  `alter table kb.projects add column assistant_id uuid references kb.agents`
]

/**
 * Each worker of a cluster says for itself that it is there: the signs of life of an address do not tell whose they are.
 *
 * So nobody takes an address that another one has, and whoever lost theirs gets it back when the other one is gone.
 */

/** The statements of this migration, in order. */
export const statements: ReadonlyArray<string> = [
  `alter table kb_cluster.workers add column seen_at timestamptz not null default now()`,
  `grant delete on kb_cluster.workers to tropism_server`
]

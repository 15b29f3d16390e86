/**
 * What a server tells of an import, as scripted servers say it.
 */
export const importId = "0190a000-0000-7000-8000-000000000001"

/** One object is made, and one line was bad. */
export const counts = {
  created: 1,
  updated: 0,
  unchanged: 0,
  relationshipsCreated: 0,
  relationshipsUpdated: 0,
  relationshipsUnchanged: 0,
  failed: 1
}

export const started = { type: "started", importId, skippedLines: 0 }

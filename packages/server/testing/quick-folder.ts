/**
 * Where tests keep what they make and remove by the thousand: in memory where there is room, else on the disk.
 *
 * A database is some seven hundred files. A file system on a disk (ext4) looks
 * at every file that was removed in the last minutes before it makes a new one,
 * so that each copy of the template costs half a second of a processor there,
 * and a twentieth of that in memory. Nothing here outlives a run.
 */
import { accessSync, chmodSync, constants, mkdtempSync, rmSync, statfsSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"

/** A file system in memory, on Linux. */
const inMemory = "/dev/shm"

/** Several times what a run has at once; a container has 64 MB of it where nobody asked for more. */
const roomBytes = 4 * 1_024 ** 3

const hasRoom = (folder: string): boolean => {
  try {
    accessSync(folder, constants.W_OK | constants.X_OK)
    const { bavail, bsize } = statfsSync(folder)
    return bavail * bsize >= roomBytes
  } catch {
    return false
  }
}

/** The folder in which tests make theirs. */
export const quickFolder: string = hasRoom(inMemory) ? inMemory : tmpdir()

/**
 * A data folder of one's own, until the scope ends.
 *
 * **Details** Anybody may pass through it: else a server of root's would keep its cluster elsewhere, and leave it there.
 */
export const quickDataFolder = Effect.acquireRelease(
  Effect.sync(() => {
    const folder = mkdtempSync(join(quickFolder, "tropism-data-"))
    chmodSync(folder, 0o711)
    return folder
  }),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
)

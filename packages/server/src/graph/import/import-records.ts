/**
 * Cuts the bytes of a file into records as they arrive and tracks the position.
 *
 * **Invariant** The position (bytes, lines and the digest of all bytes before it) is always the end of the last record
 * returned, so a batch can be committed there. Memory is bounded by one record: the bytes of a longer one are skipped
 * and it is reported as a fault.
 */
import { createHash, type Hash } from "node:crypto"
import { shortened } from "@tropism/domain/text-beginning"

/** One record of a file, or why these bytes have none. */
export interface FileRecord {
  /** Number of its first line in the file, from 1. */
  readonly line: number
  readonly bytes: Uint8Array
  readonly fault: string | undefined
}

/** A position between two records. */
export interface FilePlace {
  readonly bytes: number
  readonly lines: number
  /** SHA-256 of the file up to here, hexadecimal. */
  readonly digest: string
}

/** End of a record, in bytes from its beginning, line break included. */
export interface FoundRecord {
  readonly length: number
  readonly lines: number
  readonly fault: string | undefined
}

/** Finds the end of a record. It may remember how far it has scanned; taking a found record resets it. */
export interface RecordScanner {
  /** Scans the bytes of a record that have arrived; `isLast` when no more will come. */
  readonly scan: (bytes: Uint8Array, isLast: boolean) => FoundRecord | undefined
  /** The record to take when none ends within the bound; undefined to skip the line. */
  readonly overflow: () => FoundRecord | undefined
}

export interface RecordReader {
  readonly push: (chunk: Uint8Array) => void
  /** Marks the end of the file. */
  readonly finish: () => void
  /** The next whole record that has arrived. Its bytes are valid until the next `push`. */
  readonly next: () => FileRecord | undefined
  readonly place: () => FilePlace
}

/** Starts at a position in a file; `hash` has consumed everything before it. */
export const makeRecordReader = (options: {
  readonly scanner: RecordScanner
  readonly maxBytes: number
  readonly start: { readonly bytes: number; readonly lines: number; readonly hash: Hash }
}): RecordReader => {
  const { scanner, maxBytes } = options
  let { bytes, lines, hash } = options.start
  const held = makeByteBuffer()
  let isLast = false
  /** While a line that is too long is skipped: the hash at its end, and its length so far. */
  let passing: { readonly hash: Hash; length: number } | undefined

  const moveOn = (length: number, lineCount: number): void => {
    bytes += length
    lines += lineCount
    held.drop(length)
  }

  const take = (found: FoundRecord): FileRecord => {
    const record = held.bytes().subarray(0, found.length)
    const line = lines + 1
    hash.update(record)
    moveOn(found.length, found.lines)
    return { line, bytes: record, fault: found.fault }
  }

  /** Skips the rest of a line that is too long. */
  const pass = (state: NonNullable<typeof passing>): FileRecord | undefined => {
    const here = held.bytes()
    const end = here.indexOf(lineFeed)
    const length = end === -1 ? here.length : end + 1
    state.hash.update(here.subarray(0, length))
    state.length += length
    held.drop(length)
    if (end === -1 && !isLast) return undefined
    hash = state.hash
    passing = undefined
    const line = lines + 1
    bytes += state.length
    lines += 1
    return { line, bytes: empty, fault: `The line has more than ${maxBytes} bytes` }
  }

  /** Skips a byte order mark, which is not part of the first record; false until enough bytes have arrived. */
  const pastMark = (): boolean => {
    const here = held.bytes()
    if (here.length < byteOrderMark.length && !isLast) return false
    if (byteOrderMark.every((byte, index) => here[index] === byte)) {
      hash.update(here.subarray(0, byteOrderMark.length))
      moveOn(byteOrderMark.length, 0)
    }
    return true
  }

  const next = (): FileRecord | undefined => {
    if (passing) return pass(passing)
    if (bytes === 0 && !pastMark()) return undefined
    const here = held.bytes()
    if (here.length === 0) return undefined
    // Never scans beyond the bound, so that the result does not depend on how the bytes are split.
    const found = scanner.scan(here.subarray(0, maxBytes + 1), isLast && here.length <= maxBytes)
    if (found) return take(found)
    if (here.length <= maxBytes) return undefined
    const instead = scanner.overflow()
    if (instead) return take(instead)
    passing = { hash: hash.copy(), length: 0 }
    return pass(passing)
  }

  return {
    push: (chunk) => held.add(chunk),
    finish: () => void (isLast = true),
    next,
    place: () => ({ bytes, lines, digest: hash.copy().digest("hex") })
  }
}

export const newHash = (): Hash => createHash("sha256")

const lineFeed = 10
const byteOrderMark = [0xef, 0xbb, 0xbf]
const empty = new Uint8Array(0)

/** Returns a scanner for which a record is a line. */
export const lineScanner = (): RecordScanner => {
  let seen = 0
  return {
    scan: (bytes, isLast) => {
      const end = bytes.indexOf(lineFeed, seen)
      if (end === -1 && !isLast) {
        seen = bytes.length
        return undefined
      }
      seen = 0
      return { length: end === -1 ? bytes.length : end + 1, lines: 1, fault: undefined }
    },
    overflow: () => {
      seen = 0
      return undefined
    }
  }
}

/** Bytes added at one end and dropped at the other; it grows by doubling, so small chunks cost no more than large ones. */
const makeByteBuffer = () => {
  let store = new Uint8Array(65_536)
  let from = 0
  let to = 0
  return {
    bytes: () => store.subarray(from, to),
    drop: (length: number) => void (from += length),
    add: (chunk: Uint8Array) => {
      const kept = to - from
      if (to + chunk.length > store.length) {
        const target =
          kept + chunk.length > store.length / 2 ? grown(store.length, kept + chunk.length) : store
        target.set(store.subarray(from, to))
        store = target
        from = 0
        to = kept
      }
      store.set(chunk, to)
      to += chunk.length
    }
  }
}

const grown = (size: number, needed: number): Uint8Array<ArrayBuffer> => {
  let next = size
  while (next < needed * 2) next *= 2
  return new Uint8Array(next)
}

// Makes unchecked text from a file storable, so that a message can quote it.
//
// PostgreSQL stores neither U+0000 nor a lone surrogate, and the report of a bad line must not break the import of the good
// ones.

/** Escapes characters that cannot be stored or seen, and cuts the text between two characters. */
export const keepableText = (text: string, maxChars: number): string =>
  shortened(text.replace(/[\p{Cc}\p{Cs}]/gu, escapeOf), maxChars)

const escapeOf = (char: string): string => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`

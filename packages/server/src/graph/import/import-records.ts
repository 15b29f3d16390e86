/**
 * Cuts the bytes of a file into records while they come, and knows how far it is.
 *
 * Holds one record at a time, which is bounded: of a longer one the bytes are
 * passed over and it is told as a fault. The place it is at (bytes, lines and
 * the digest of all bytes up to there) is always the end of the last record it
 * gave, whatever of the next one it holds, so a batch can be committed there.
 */
import { createHash, type Hash } from "node:crypto"
import { shortened } from "@tropism/domain/text-beginning"

/** One record of a file, or why there is none in these bytes. */
export interface FileRecord {
  /** The number of its first line in the file, from 1. */
  readonly line: number
  readonly bytes: Uint8Array
  readonly fault: string | undefined
}

/** A place between two records. */
export interface FilePlace {
  readonly bytes: number
  readonly lines: number
  /** SHA-256 of the file up to here, hexadecimal. */
  readonly digest: string
}

/** Where a record ends, counted from its beginning, its line break included. */
export interface FoundRecord {
  readonly length: number
  readonly lines: number
  readonly fault: string | undefined
}

/** Knows where a record ends. It may remember how far it has looked; whoever takes what it found begins anew. */
export interface RecordScanner {
  /** Looks at the bytes of a record that have come so far; `isLast` when no more will come. */
  readonly scan: (bytes: Uint8Array, isLast: boolean) => FoundRecord | undefined
  /** What to take when a record does not end within its bound; undefined to pass over the line. */
  readonly overflow: () => FoundRecord | undefined
}

export interface RecordReader {
  readonly push: (chunk: Uint8Array) => void
  /** No more bytes will come. */
  readonly finish: () => void
  /** The next whole record, if its bytes are here. They are valid until the next `push`. */
  readonly next: () => FileRecord | undefined
  readonly place: () => FilePlace
}

/** Begins at a place in a file; `hash` has seen everything before it. */
export const makeRecordReader = (options: {
  readonly scanner: RecordScanner
  readonly maxBytes: number
  readonly start: { readonly bytes: number; readonly lines: number; readonly hash: Hash }
}): RecordReader => {
  const { scanner, maxBytes } = options
  let { bytes, lines, hash } = options.start
  const held = makeByteBuffer()
  let isLast = false
  /** While a line that is too long is passed over: the hash at its end to be, and how long it is so far. */
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

  /** Passes over the rest of a line that is too long. */
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

  /** Moves past a byte order mark, which is no part of the first record. Answers whether the beginning is all here. */
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
    // Never more than the bound, so that what a file means does not depend on how it comes.
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

/** A record is a line. */
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

/** Bytes that are added at one end and dropped at the other; it grows by doubling, so that small pieces cost no more than large ones. */
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

// Text out of a file that nobody has judged yet, so that a message may quote it.
//
// PostgreSQL keeps neither U+0000 nor half a surrogate pair. What says that a
// line is bad must not be what breaks the import of the good ones.

/** Shows what cannot be kept or seen as an escape, and cuts the text between two characters. */
export const keepableText = (text: string, maxChars: number): string =>
  shortened(text.replace(/[\p{Cc}\p{Cs}]/gu, escapeOf), maxChars)

const escapeOf = (char: string): string => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`

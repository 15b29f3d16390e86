/**
 * Ids of tool calls that every provider takes: nine letters and digits, as Mistral demands.
 */
import { createHash } from "node:crypto"

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
const idChars = 9

/** The id that stands for another one, always the same. */
export const safeCallId = (id: string): string =>
  Array.from(
    createHash("sha256").update(id, "utf8").digest().subarray(0, idChars),
    (byte) => alphabet[byte % alphabet.length]
  ).join("")

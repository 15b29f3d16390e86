/**
 * A number that somebody typed, as it is sent.
 *
 * What is no number, and a whole one that would be rounded on its way, goes as it was typed: the server says
 * what is wrong with it, and nothing is written.
 */
export const numberSent = (text: string): number | string => {
  const number = text.trim() === "" ? Number.NaN : Number(text)
  const isKept = Number.isFinite(number) && (Number.isSafeInteger(number) || !Number.isInteger(number))
  return isKept ? number : text
}

/**
 * Amounts as people say them: tokens, money, counts with their noun.
 */

/** `950 tokens`, `12.4 k tokens`, `1.2 M tokens`. */
export const tokensText = (tokens: number): string =>
  `${shortCount(tokens)} ${tokens === 1 ? "token" : "tokens"}`

/** `950`, `12.4 k`, `1.2 M`. */
export const shortCount = (count: number): string => {
  if (count < 10_000) return count.toLocaleString("en")
  return count < 1_000_000 ? `${short(count / 1_000)} k` : `${short(count / 1_000_000)} M`
}

const short = (amount: number): string => (Math.floor(amount * 10) / 10).toLocaleString("en")

/** `$0`, `$0.0042`, `$1.50`: small sums keep two figures that say something. */
export const moneyText = (dollars: number): string => {
  if (dollars === 0) return "$0"
  if (dollars < 0.000_01) return "under $0.00001"
  if (dollars < 0.1) return `$${Number(dollars.toPrecision(2)).toFixed(7).replace(/0+$/, "")}`
  return `$${dollars.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 })}`
}

/** `1 run`, `2 runs`. */
export const countText = (count: number, noun: string, nouns = `${noun}s`): string =>
  `${count.toLocaleString("en")} ${count === 1 ? noun : nouns}`

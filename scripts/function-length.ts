/**
 * Counts the lines of functions: what each one says itself.
 *
 * A layer or a component holds its members as functions inside a function, so
 * the lines of an inner function are the inner one's alone. Blank lines and
 * comments are free. It works on blanked text and balanced braces; an arrow
 * whose body is one expression belongs to the function around it.
 */
import { codeOnly, lineAt, withoutComments } from "./source-text.ts"

/** A function with a body in braces: where it begins and how many lines are its own. */
export interface FunctionLength {
  readonly line: number
  readonly ownLines: number
}

interface Body {
  readonly open: number
  readonly close: number
}

/** Every function of a file that has a body in braces, in the order in which they open. */
export const functionLengths = (text: string): ReadonlyArray<FunctionLength> => {
  const bodies = bodiesOf(codeOnly(text))
  const starts = lineStarts(withoutComments(text))
  return bodies.map((body) => ({
    line: lineAt(text, body.open),
    ownLines:
      linesWithin(starts, body) -
      inside(bodies, body).reduce((sum, inner) => sum + linesWithin(starts, inner), 0)
  }))
}

/** The functions directly inside another: those that lie in it and in none of its inner ones. */
const inside = (bodies: ReadonlyArray<Body>, outer: Body): ReadonlyArray<Body> => {
  const within = bodies.filter((body) => body.open > outer.open && body.close < outer.close)
  return within.filter((body) => !within.some((other) => other.open < body.open && other.close > body.close))
}

/** The position of the first visible character of each line that has one. */
const lineStarts = (text: string): ReadonlyArray<number> =>
  [...text.matchAll(/^[^\S\n]*\S/gm)].map((match) => match.index + match[0].length - 1)

/** Lines that begin after the opening brace and before the closing one. */
const linesWithin = (starts: ReadonlyArray<number>, body: Body): number =>
  starts.filter((start) => start > body.open && start < body.close).length

const bodiesOf = (code: string): ReadonlyArray<Body> => {
  const bodies: Array<Body> = []
  const open: Array<number> = []
  for (const match of code.matchAll(/[{}]/g)) {
    if (match[0] === "{") open.push(match.index)
    else {
      const start = open.pop()
      if (start !== undefined && opensBody(code, start)) bodies.push({ open: start, close: match.index })
    }
  }
  return bodies.toSorted((a, b) => a.open - b.open)
}

/** Whether a brace opens the body of a function rather than a block, a class, a type or an object. */
const opensBody = (code: string, brace: number): boolean => {
  const before = code.slice(0, brace).trimEnd()
  if (before.endsWith("=>")) return true
  const parameters = /\)\s*(?::[^=;{}()]{1,200})?$/.exec(before.slice(-300))
  if (parameters === null) return false
  let depth = 0
  for (let at = before.length - parameters[0].length; at >= 0; at -= 1) {
    if (code[at] === ")") depth += 1
    if (code[at] === "(") depth -= 1
    if (depth === 0)
      return !/\b(?:if|for|while|switch|catch|with|await)\s*$/.test(code.slice(Math.max(0, at - 20), at))
  }
  return false
}

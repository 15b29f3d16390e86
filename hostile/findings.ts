/**
 * What a hostile run has found, and how much it has sent.
 *
 * A finding is told the moment it is made, with what repeats it; a run that
 * found anything ends with 1. Of findings that are alike only the first few are
 * told in full, so that one fault does not hide the others.
 */

/** Of one kind of finding. */
const toldOfOneKind = 5

/** Characters of a request that are told. */
const toldChars = 600

export class Findings {
  readonly #kinds = new Map<string, number>()
  readonly #figures = new Map<string, number>()

  /** Tells of a fault; `kind` groups those that are alike. */
  add(kind: string, what: string, request: string): void {
    const count = (this.#kinds.get(kind) ?? 0) + 1
    this.#kinds.set(kind, count)
    if (count <= toldOfOneKind)
      console.log(`FOUND ${kind}\n  ${what.slice(0, toldChars)}\n  ${request.slice(0, toldChars)}`)
  }

  count(figure: string, by = 1): void {
    this.#figures.set(figure, (this.#figures.get(figure) ?? 0) + by)
  }

  get figures(): ReadonlyArray<readonly [string, number]> {
    return [...this.#figures].toSorted(([one], [other]) => one.localeCompare(other))
  }

  /** Kinds of findings, and how many there are of each. */
  get kinds(): ReadonlyArray<readonly [string, number]> {
    return [...this.#kinds]
  }
}

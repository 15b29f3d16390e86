/**
 * Remembers what was asked for last, a bounded number.
 *
 * In two halves, of which the earlier is dropped whole: taking single entries out
 * of a large map costs fifty times as much. What is asked for is among the newest
 * again.
 */

export class RecentMap<A> {
  readonly #capacity: number
  #recent = new Map<string, A>()
  #earlier = new Map<string, A>()

  constructor(capacity: number) {
    this.#capacity = capacity
  }

  /** How many are remembered. */
  get size(): number {
    return this.#recent.size + this.#earlier.size
  }

  get(key: string): A | undefined {
    const value = this.#recent.get(key)
    if (value !== undefined) return value
    const earlier = this.#earlier.get(key)
    if (earlier !== undefined) this.set(key, earlier)
    return earlier
  }

  set(key: string, value: A): void {
    this.#earlier.delete(key)
    if (!this.#recent.has(key) && this.#recent.size >= this.#capacity / 2) {
      this.#earlier = this.#recent
      this.#recent = new Map()
    }
    this.#recent.set(key, value)
  }

  delete(key: string): void {
    this.#recent.delete(key)
    this.#earlier.delete(key)
  }
}

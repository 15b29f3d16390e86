/**
 * A map of bounded size that keeps the most recently used entries.
 *
 * It has two halves and drops the older one whole: deleting single entries from a large map costs fifty times as much. A read makes an
 * entry recent again.
 */

export class RecentMap<A> {
  readonly #capacity: number
  #recent = new Map<string, A>()
  #earlier = new Map<string, A>()

  constructor(capacity: number) {
    this.#capacity = capacity
  }

  /** The number of entries. */
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

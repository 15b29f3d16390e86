/**
 * How large what can be pressed is, measured as a finger meets it (WCAG 2.2, 2.5.8: 24 by 24 CSS pixels).
 *
 * A field has the area of the label around it, and a link the one that is stretched
 * over its row; where two lie over one another, each has half of that. A link in the words of a sentence may be as small as its line, as there.
 */
import type { Page } from "playwright-core"

/** What on the page, as it is now, is too small to be pressed: its name and its size. */
export const smallTargets = (page: Page): Promise<ReadonlyArray<string>> => page.evaluate(measure)

const measure = (): ReadonlyArray<string> => {
  const least = 24
  const pressable =
    "a[href], button, input, select, textarea, summary, [role=tab], [role=option], [role=slider], [tabindex='0']"
  /** The sides of a box, and of what is drawn over it to be pressed as well. */
  const sidesOf = (element: Element): readonly [number, number] => {
    const { width, height } = element.getBoundingClientRect()
    const over = ["::before", "::after"].map((part) => getComputedStyle(element, part))
    const stretched = over.filter(({ content, position }) => content !== "none" && position === "absolute")
    return [
      Math.max(width, ...stretched.map((style) => Number.parseFloat(style.width) || 0)),
      Math.max(height, ...stretched.map((style) => Number.parseFloat(style.height) || 0))
    ]
  }
  const isInSentence = (element: Element): boolean =>
    getComputedStyle(element).display === "inline" &&
    [...(element.parentElement?.childNodes ?? [])].some(
      (node) => node.nodeType === Node.TEXT_NODE && /\w/.test(node.textContent ?? "")
    )
  const isThere = (element: Element): boolean => {
    const { width, height } = element.getBoundingClientRect()
    const isShown = element.checkVisibility({ visibilityProperty: true }) && width > 1 && height > 1
    // What is there for who does not see, until it has the focus, is no place to press.
    const isClipped = getComputedStyle(element).clipPath !== "none"
    return (
      isShown && !isClipped && !element.matches(":disabled") && element.closest("[aria-hidden=true]") === null
    )
  }
  /** Whether one of the two is above the page, as a head that stays or a dialog is, and the other is not. */
  const layerOf = (element: Element): Element | null => {
    for (let each: Element | null = element; each !== null; each = each.parentElement)
      if (["fixed", "sticky"].includes(getComputedStyle(each).position)) return each
    return null
  }
  /** How much of a side is left where another of the same layer, which is no part of it, lies over it. */
  const leftOf = (element: Element, others: ReadonlyArray<Element>): readonly [number, number] => {
    const own = element.getBoundingClientRect()
    const covered = others
      .filter((other) => !other.contains(element) && !element.contains(other))
      .filter((other) => layerOf(other) === layerOf(element))
      .map((other) => other.getBoundingClientRect())
      .map((box) => ({
        x: Math.min(own.right, box.right) - Math.max(own.left, box.left),
        y: Math.min(own.bottom, box.bottom) - Math.max(own.top, box.top)
      }))
      .filter(({ x, y }) => x > 0 && y > 0)
    const [width, height] = sidesOf(element)
    // What is shared belongs to neither: half of it to each.
    const across = covered.filter(({ x, y }) => x < y).reduce((sum, { x }) => sum + x / 2, 0)
    const along = covered.filter(({ x, y }) => x >= y).reduce((sum, { y }) => sum + y / 2, 0)
    return [width - across, height - along]
  }
  const all = [...document.querySelectorAll(pressable)].filter(isThere)
  return all.flatMap((element) => {
    const labels = "labels" in element ? [...((element.labels as NodeListOf<Element> | null) ?? [])] : []
    const label = labels.find((each) => each.contains(element))
    const [width, height] = label === undefined ? leftOf(element, all) : sidesOf(label)
    if ((width >= least - 0.1 && height >= least - 0.1) || isInSentence(element)) return []
    const name = element.getAttribute("aria-label") ?? element.textContent?.trim().slice(0, 40) ?? ""
    return [`${element.tagName.toLowerCase()} "${name}" is ${width.toFixed(1)} × ${height.toFixed(1)}`]
  })
}

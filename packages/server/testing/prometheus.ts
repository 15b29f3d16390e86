/**
 * A strict reader of Prometheus' text format 0.0.4: whatever it does not know is an error.
 */

export interface Family {
  readonly type: string
  readonly help: string
  /** Values by name and labels, as they are written. */
  readonly samples: ReadonlyMap<string, number>
}

const sampleForm =
  /^(?<name>[a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(?<labels>(?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*",?)*)\})? (?<value>[+-]?(?:\d+(?:\.\d+)?(?:e[+-]?\d+)?|Inf)|NaN)$/

/** Reads a scrape; throws for a line, a type or a histogram that is wrong. */
export const parsePrometheus = (text: string): ReadonlyMap<string, Family> => {
  const families = new Map<string, { type: string; help: string; samples: Map<string, number> }>()
  let help: readonly [string, string] | undefined
  let open: string | undefined
  if (!text.endsWith("\n")) throw new Error("The last line has no end")
  for (const line of text.slice(0, -1).split("\n")) {
    const described = /^# HELP (\S+) (.+)$/.exec(line)
    const typed = /^# TYPE (\S+) (counter|gauge|histogram)$/.exec(line)
    if (described) help = [described[1] ?? "", described[2] ?? ""]
    else if (typed) {
      const [, name = "", type = ""] = typed
      if (families.has(name)) throw new Error(`${name} stands twice`)
      if (help?.[0] !== name) throw new Error(`${name} has no help`)
      families.set(name, { type, help: help[1], samples: new Map() })
      open = name
    } else {
      const sample = sampleForm.exec(line)
      if (!sample?.groups || open === undefined) throw new Error(`No sample: ${line}`)
      const { labels = "", name = "", value = "" } = sample.groups
      const family = families.get(open)
      const base = family?.type === "histogram" ? name.replace(/_(bucket|sum|count)$/, "") : name
      if (base !== open) throw new Error(`${name} stands under ${open}`)
      const key = labels === "" ? name : `${name}{${labels}}`
      if (family?.samples.has(key)) throw new Error(`${key} stands twice`)
      family?.samples.set(key, value === "+Inf" ? Infinity : Number(value))
    }
  }
  for (const [name, family] of families) {
    if (family.type === "histogram") checkHistogram(name, family.samples)
    if (family.type === "counter" && !name.endsWith("_total")) throw new Error(`${name} is a counter`)
  }
  return families
}

/** Buckets only grow, and the last holds as many as were counted. */
const checkHistogram = (name: string, samples: ReadonlyMap<string, number>): void => {
  const last = new Map<string, number>()
  for (const [key, value] of samples) {
    if (!key.startsWith(`${name}_bucket`)) continue
    const labels = key
      .slice(`${name}_bucket`.length)
      .replace(/,?le="[^"]*"/, "")
      .replace("{}", "")
    if (value < (last.get(labels) ?? 0)) throw new Error(`${key} is smaller than the bucket before`)
    last.set(labels, value)
  }
  for (const [labels, value] of last)
    if (samples.get(`${name}_count${labels}`) !== value) throw new Error(`${name}${labels} counts wrong`)
}

/** The sum of a figure's samples that have all of these labels. */
export const sumOf = (
  families: ReadonlyMap<string, Family>,
  name: string,
  labels: Readonly<Record<string, string>> = {}
): number =>
  [...(families.get(name)?.samples ?? [])]
    .filter(([key]) => Object.entries(labels).every(([label, value]) => key.includes(`${label}="${value}"`)))
    .reduce((sum, [, value]) => sum + value, 0)

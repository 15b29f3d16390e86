/**
 * What a browser calls itself, in two words that a person knows.
 */

const browsers: ReadonlyArray<readonly [RegExp, string]> = [
  [/Edg\//, "Edge"],
  [/OPR\//, "Opera"],
  [/Firefox\//, "Firefox"],
  [/(?:Headless)?Chrome\//, "Chrome"],
  [/Safari\//, "Safari"]
]

const systems: ReadonlyArray<readonly [RegExp, string]> = [
  [/iPhone|iPad/, "iOS"],
  [/Android/, "Android"],
  [/Windows/, "Windows"],
  [/Mac OS X/, "macOS"],
  [/Linux/, "Linux"]
]

/** `Firefox on Linux`; what is not known is told as it calls itself. */
export const browserText = (name: string | null): string => {
  if (name === null) return "Unknown browser"
  const browser = browsers.find(([sign]) => sign.test(name))?.[1]
  const system = systems.find(([sign]) => sign.test(name))?.[1]
  if (browser === undefined) return name
  return system === undefined ? browser : `${browser} on ${system}`
}

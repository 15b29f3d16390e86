/**
 * What the key is called that makes a letter a command: on Apple's keyboards ⌘, elsewhere Ctrl.
 */

export const commandKeyOf = (platform: string): "⌘" | "Ctrl" =>
  /^(?:Mac|iPhone|iPad|iPod)/.test(platform) ? "⌘" : "Ctrl"

/** The key of this machine. */
export const commandKey = commandKeyOf(navigator.platform)

/** `⌘K`, `Ctrl K`. */
export const commandText = (letter: string): string =>
  commandKey === "⌘" ? `⌘${letter}` : `${commandKey} ${letter}`

/**
 * The colour of each type of object, by its name alone: the same in every picture, whatever other types there are.
 *
 * There are more types than colours that an eye tells apart, so two may share
 * one; the legend says which is whose. All are readable on light and dark.
 */

export const typeColour = (type: string): string => palette[hashOf(type) % palette.length] ?? "#8a8a83"

/** FNV-1a; its bits are mixed once more, because names of a few letters leave the high ones alike. */
const hashOf = (text: string): number => {
  let hash = 0x81_1c_9d_c5
  for (const character of text) hash = Math.imul(hash ^ (character.codePointAt(0) ?? 0), 0x01_00_01_93)
  hash = Math.imul(hash ^ (hash >>> 16), 0x85_eb_ca_6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2_b2_ae_35)
  return (hash ^ (hash >>> 16)) >>> 0
}

/** Red, green and blue of a hue in degrees; all else goes from 0 to 1. */
const mixed = (hue: number, saturation: number, lightness: number): ReadonlyArray<number> =>
  [0, 8, 4].map((offset) => {
    const place = (offset + hue / 30) % 12
    const spread = saturation * Math.min(lightness, 1 - lightness)
    return lightness - spread * Math.max(-1, Math.min(place - 3, 9 - place, 1))
  })

const luminance = ([red = 0, green = 0, blue = 0]: ReadonlyArray<number>): number => {
  const linear = (part: number) => (part <= 0.040_45 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
  return 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue)
}

/** A hue as bright as it has to be: yellow and blue of one lightness are not equally bright. */
const colourOf = (hue: number, saturation: number, brightness: number): string => {
  let [dark, light] = [0, 1]
  for (let step = 0; step < 12; step++) {
    const middle = (dark + light) / 2
    if (luminance(mixed(hue, saturation, middle)) < brightness) dark = middle
    else light = middle
  }
  const digits = mixed(hue, saturation, light).map((part) =>
    Math.round(part * 255)
      .toString(16)
      .padStart(2, "0")
  )
  return `#${digits.join("")}`
}

const hues = Array.from({ length: 36 }, (_, place) => place * 10)
const saturations = [0.42, 0.8]
/** Relative luminances with a contrast of three to white and to the page's dark. */
const brightnesses = [0.15, 0.21, 0.28]

const palette: ReadonlyArray<string> = brightnesses.flatMap((brightness) =>
  saturations.flatMap((saturation) => hues.map((hue) => colourOf(hue, saturation, brightness)))
)

/** The attribute by which the palette's door, which is there before the palette, knows its field. */
export const fieldMark = "data-palette-field"

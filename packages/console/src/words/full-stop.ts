/**
 * A sentence ends: what another one follows has its full stop.
 *
 * Pure.
 */

export const withStop = (text: string): string => (/[.!?…]$/.test(text) ? text : `${text}.`)

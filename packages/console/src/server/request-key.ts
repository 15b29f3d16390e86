/**
 * Names for requests that have their effect once, however often they are sent.
 */

/** A name that no other request has; made of bytes, because a page over plain HTTP has no other source. */
export const newRequestKey = (): string =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join(
    ""
  )

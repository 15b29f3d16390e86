/**
 * Which addresses anybody in the world may reach.
 */
import { describe, expect, it } from "@effect/vitest"
import { isPublicAddress } from "./outside-network.ts"

describe("isPublicAddress", () => {
  it.each(["8.8.8.8", "1.1.1.1", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "2a00:1450:4001::1"])(
    "%s is the world's",
    (address) => expect(isPublicAddress(address)).toBe(true)
  )

  it.each([
    "0.0.0.0",
    "10.1.2.3",
    "100.64.0.1",
    "127.0.0.1",
    "127.255.255.255",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.2.1",
    "192.168.1.1",
    "198.18.0.1",
    "203.0.113.9",
    "224.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::ffff:8.8.8.8",
    "::ffff:127.0.0.1",
    "64:ff9b::808:808",
    "2001:db8::1",
    "2001::1",
    "2002:7f00:1::",
    "fc00::1",
    "fe80::1",
    "fe80::1%eth0",
    "ff02::1",
    "localhost",
    "127.1",
    ""
  ])("%s is not", (address) => expect(isPublicAddress(address)).toBe(false))
})

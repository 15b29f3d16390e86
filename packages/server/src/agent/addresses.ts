/**
 * Which network addresses are the world's, and which are somebody's inside.
 *
 * Flow: graph → outbox → dispatch → run → tool → task, beside it **agent** → model
 *
 * A file is fetched for whoever may speak to an agent; they must not reach with
 * it what only this machine or its network can. What is not plainly public is
 * private here.
 */
import { BlockList, isIP } from "node:net"

/** Ranges that no fetch reaches: the special-purpose registries of IANA (RFC 6890 and its successors). */
const closed4 = [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.0.2.0", 24],
  ["192.88.99.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["198.51.100.0", 24],
  ["203.0.113.0", 24],
  ["224.0.0.0", 4],
  ["240.0.0.0", 4]
] as const

const blocked4 = new BlockList()
for (const [network, bits] of closed4) blocked4.addSubnet(network, bits, "ipv4")

/** The unicast addresses that are given out, and in them what is not for the world. */
const open6 = new BlockList()
open6.addSubnet("2000::", 3, "ipv6")
const blocked6 = new BlockList()
for (const [network, bits] of [
  ["2001::", 23],
  ["2001:db8::", 32],
  ["2002::", 16],
  ["3fff::", 20]
] as const)
  blocked6.addSubnet(network, bits, "ipv6")

/** Whether an address, written as digits, is one that anybody in the world may reach. */
export const isPublicAddress = (address: string): boolean => {
  switch (isIP(address)) {
    case 4:
      return !blocked4.check(address, "ipv4")
    // An IPv4 address in the clothes of IPv6 lies outside of 2000::/3, and so does NAT64.
    case 6:
      return open6.check(address, "ipv6") && !blocked6.check(address, "ipv6")
    default:
      return false
  }
}

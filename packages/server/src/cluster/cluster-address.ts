/**
 * Where a server is reached by the other servers of its cluster.
 */
import { clusterLimits } from "./cluster-limits.ts"

export interface ClusterAddress {
  readonly host: string
  readonly port: number
}

/** Reads `host:port`, with the host of an IPv6 address in brackets; undefined where the text is none. */
export const readClusterAddress = (text: string): ClusterAddress | undefined => {
  const { host, port } = /^(?<host>[a-z0-9._-]+|\[[0-9a-f:.]+\]):(?<port>\d{1,5})$/i.exec(text)?.groups ?? {}
  if (host === undefined || Number(port) < 1 || Number(port) > 65_535) return undefined
  // Where a server listens on all of its addresses nobody reaches it by that.
  if (/^(0\.0\.0\.0|\[[0:]+\])$/.test(host)) return undefined
  return { host: host.replace(/^\[|\]$/g, ""), port: Number(port) }
}

/** Where the others are on the same machine, beside the doors; undefined where that is no address. */
export const besideDoors = (doors: ClusterAddress): ClusterAddress | undefined => {
  const port = doors.port + clusterLimits.portDistance
  return isLoopback(doors.host) && doors.port > 0 && port <= 65_535 ? { host: doors.host, port } : undefined
}

/** The address as other servers and the database know it. */
export const nameOf = ({ host, port }: ClusterAddress): string => `${host}:${port}`

/** Where the others call it. */
export const urlOf = ({ host, port }: ClusterAddress): string =>
  `ws://${host.includes(":") ? `[${host}]` : host}:${port}/`

/** Where the server listens: whoever reaches it from outside may do so at another address than its own. */
export const listensAt = ({
  host,
  port
}: ClusterAddress): { readonly host?: string | undefined; readonly port: number } =>
  isLoopback(host) ? { host, port } : { port }

export const isLoopback = (host: string): boolean =>
  host === "localhost" || host === "::1" || host.startsWith("127.")

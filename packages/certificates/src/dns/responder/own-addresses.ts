// The addresses of a wildcard. A local resolver often uses port 53 on a loopback address (systemd-resolved: 127.0.0.53), so a socket on all
// addresses could not be opened.
import { networkInterfaces } from 'node:os';

const LINK_LOCAL = /^fe[89ab]/i;

/** Network interfaces of the machine, as returned by `networkInterfaces` of node:os. */
type Interfaces = ReturnType<typeof networkInterfaces>;

/** Other hosts are returned unchanged. A machine with loopback only listens there, because no other machine can reach it. */
export const addressesFor = (host: string, interfaces: Interfaces = networkInterfaces()): readonly string[] => {
  if (host !== '' && host !== '0.0.0.0' && host !== '::') return [host];
  const all = Object.values(interfaces).flatMap((addresses) => addresses ?? []);
  const wanted = all.filter(({ address, family, internal }) => {
    // A link-local address is left out: it needs a zone, and no resolver uses it.
    if (internal || LINK_LOCAL.test(address)) return false;
    return family === 'IPv4' || host === '::' || host === '';
  });
  const own = [...new Set(wanted.map(({ address }) => address))];
  return own.length === 0 ? ['127.0.0.1'] : own;
};

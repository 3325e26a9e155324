// The addresses that stand for a wildcard one. A resolver of the machine's own mostly has port 53 of a loopback address (systemd-resolved: 127.0.0.53),
// and a socket on all addresses would not open beside it.
import { networkInterfaces } from 'node:os';

const LINK_LOCAL = /^fe[89ab]/i;

/** As `networkInterfaces` of node:os has them. */
type Interfaces = ReturnType<typeof networkInterfaces>;

/** What is no wildcard stands for itself. A machine that has loopback alone is asked there, since nobody else can reach it. */
export const addressesFor = (host: string, interfaces: Interfaces = networkInterfaces()): readonly string[] => {
  if (host !== '' && host !== '0.0.0.0' && host !== '::') return [host];
  const all = Object.values(interfaces).flatMap((addresses) => addresses ?? []);
  const wanted = all.filter(({ address, family, internal }) => {
    // A link-local address needs the name of its wire, and no resolver asks there.
    if (internal || LINK_LOCAL.test(address)) return false;
    return family === 'IPv4' || host === '::' || host === '';
  });
  const own = [...new Set(wanted.map(({ address }) => address))];
  return own.length === 0 ? ['127.0.0.1'] : own;
};

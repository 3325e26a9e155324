// Whether tenants' alerts may go to private addresses: `[load_balancing] alert_allow_private`.
import { classOfAddress } from './address-guard.ts';

/** "auto": while the edge itself is for this machine only (`[server] host` is loopback), all its tenants are at home here. */
export const mayAlertPrivate = (setting: 'auto' | boolean, host: string): boolean =>
  setting === 'auto' ? isLoopbackHost(host) : setting;

const isLoopbackHost = (host: string): boolean => {
  const plain = host.toLowerCase().replace(/^\[(.*)\]$/, '$1');
  return plain === 'localhost' || plain === 'localhost.' || classOfAddress(plain) === 'loopback';
};

// Who may speak to the stand-in: programs of this machine, and its own pages. A page from elsewhere may not, under whatever name it
// reaches this port.
import { SimError } from './sim-error.ts';

const LOOPBACK_NAME = /^(localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?$/i;

export const isLoopbackHost = (host: string): boolean => /^(localhost|127(?:\.\d{1,3}){3}|::1|\[::1\])$/i.test(host);

export const checkHost = (host: string | undefined): void => {
  if (host === undefined || !LOOPBACK_NAME.test(host)) throw forbidden('The simulator is for this machine only.');
};

export const checkOrigin = (origin: string | undefined, host: string | undefined): void => {
  if (origin === undefined || origin.toLowerCase() === `http://${host?.toLowerCase()}`) return;
  throw forbidden('The simulator does not take calls of other pages.');
};

const forbidden = (message: string): SimError => new SimError(403, { type: 'invalid_request_error', message });

// Connection gate with room for all connections of a test unless told otherwise. For tests only.

import { ConnectionGate } from '@tunnel/http-shell';
import { Admission } from '@tunnel/rules/admission';
import { createLogger, systemClock } from '@tunnel/runtime';

export const openGate = (api = 1000): ConnectionGate =>
  new ConnectionGate({
    admission: new Admission({ limits: { visitors: 0, control: 0, api }, perNetwork: 1 }),
    trustedProxies: [],
    clock: systemClock,
    logger: createLogger({ level: 'silent', format: 'json' }),
  });

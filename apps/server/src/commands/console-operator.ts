// Who stands at the console, as the audit names them.
import { userInfo } from 'node:os';
import type { OperatorActor } from '@tunnel/platform';

export const consoleOperator = (): OperatorActor => ({ kind: 'operator', name: nameOf() });

const nameOf = (): string => {
  try {
    return userInfo().username;
  } catch {
    // A user without an entry in the password file, as in containers.
    return `uid ${process.getuid?.() ?? 'unknown'}`;
  }
};

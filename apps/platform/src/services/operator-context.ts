// What the verbs of operators are given: they run beside the platform too, from a command with a database and nothing else.
import type { ServiceContext } from './service-context.ts';

export type OperatorContext = Pick<ServiceContext, 'db' | 'clock'>;

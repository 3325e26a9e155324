// Whether what the tunnels lead to is there: a connection to each service, a look at each folder. What speaks UDP cannot be asked.
import { stat } from 'node:fs/promises';
import type { TargetFacts } from '@tunnel/core';
import type { Clock } from '@tunnel/runtime';
import { CLIENT_LIMITS } from '../limits.ts';
import { localTargetOf, localText } from '../local/local-target.ts';
import { tcpProbe } from '../local/probe.ts';
import { reasonOf } from '../network/dial-faults.ts';
import type { TunnelSpec } from '../tunnels/tunnel-spec.ts';

export const lookAtTargets = (
  tunnels: readonly TunnelSpec[],
  clock: Clock,
  signal: AbortSignal,
): Promise<TargetFacts[]> =>
  Promise.all(
    tunnels.filter(canBeAsked).map(async (spec) => ({
      ...{ name: spec.name ?? spec.protocol, target: localText(spec) },
      problem:
        spec.files === undefined ? await problemOfService(spec, clock, signal) : await problemOfFolder(spec.files.dir),
    })),
  );

const canBeAsked = ({ protocol, service }: TunnelSpec): boolean => protocol !== 'udp' && service !== 'udp';

const problemOfService = async (spec: TunnelSpec, clock: Clock, signal: AbortSignal): Promise<string | null> => {
  const target = localTargetOf(spec, null);
  if (target.kind === 'files') return null;
  const result = await tcpProbe({ target, timeoutMs: CLIENT_LIMITS.DOCTOR_TARGET_WITHIN_MS, clock })(signal);
  return result.ok ? null : result.reason;
};

const problemOfFolder = async (dir: string): Promise<string | null> => {
  try {
    return (await stat(dir)).isDirectory() ? null : 'it is no folder';
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT' ? 'no such folder' : reasonOf(error);
  }
};

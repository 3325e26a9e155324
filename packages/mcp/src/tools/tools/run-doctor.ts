// Tool run_doctor: runs all checks of the path from this computer to the edge, as in `tunnel doctor --json`.
import { Fault } from '@tunnel/errors';
import * as z from 'zod';
import { defineTool } from '../tool.ts';

const check = z.looseObject({
  id: z.string(),
  title: z.string(),
  status: z.enum(['ok', 'warn', 'fail', 'skip']),
  detail: z.string(),
  hint: z.string(),
  ms: z.number(),
});

export const runDoctor = defineTool({
  name: 'run_doctor',
  title: 'Run the doctor',
  description:
    'Checks the path from this computer to the edge (settings, key, clock, proxy, DNS, TCP, TLS, edge, speed, UDP, local targets) and returns a result and a fix for every step. Use it when tunnels do not connect or are slow, not before every tunnel. Takes up to 20 s and may transfer a few megabytes to measure the speed. Changes nothing and shows no secrets.',
  input: z.strictObject({}),
  output: z.looseObject({ ok: z.boolean(), checks: z.array(check) }),
  run: async (host, _input, call) => {
    if (host.runDoctor === undefined) throw new Fault('INTERNAL', {}, { internal: 'the host has no doctor' });
    return (await host.runDoctor(call)) as { ok: boolean; checks: z.input<typeof check>[] };
  },
});

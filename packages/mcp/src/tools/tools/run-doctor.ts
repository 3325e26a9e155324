// run_doctor: every check of the way from this machine to the edge, as `tunnel doctor --json` has them.
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
    'Checks the whole way from this machine to the edge (settings, key, clock, proxy, name, TCP, TLS, edge, speed, UDP, local targets) and says for each step what was found and what to do. Takes up to 20 s and may transfer some megabytes to measure the speed; it changes nothing and shows no secret. Use it when tunnels do not connect or are slow, not as a routine before opening one.',
  input: z.strictObject({}),
  output: z.looseObject({ ok: z.boolean(), checks: z.array(check) }),
  run: async (host, _input, call) => {
    if (host.runDoctor === undefined) throw new Fault('INTERNAL', {}, { internal: 'the host has no doctor' });
    return (await host.runDoctor(call)) as { ok: boolean; checks: z.input<typeof check>[] };
  },
});

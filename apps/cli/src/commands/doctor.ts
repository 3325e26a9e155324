// `tunnel doctor`: checks the whole path between a local service and its visitors, and reports problems.
import { onSignals } from '@tunnel/runtime';
import { Command } from 'commander';
import { addServerFlags, type ServerFlags } from '../config/flags.ts';
import { EXIT, type ExitCode, exitCodeOfSignal } from '../io/exit-codes.ts';
import type { Io } from '../io/io.ts';
import { diagnosisText, Progress } from '../output/doctor.ts';
import { collectDiagnostics, examinedFields } from '../setup/collect-diagnostics.ts';

interface DoctorFlags extends ServerFlags {
  readonly json?: boolean;
  readonly bandwidth: boolean;
}

export const doctorCommand = (io: Io, finish: (code: ExitCode) => void): Command =>
  addServerFlags(
    new Command('doctor')
      .description('Find out why tunnels do not work')
      .option('--no-bandwidth', 'Skip the bandwidth test')
      .option('--json', 'Print the report as JSON'),
  )
    .addHelpText('after', '\nExamples:\n  $ tunnel doctor --server tunnels.example.com:443 --no-bandwidth')
    .action(async (flags: DoctorFlags) => {
      const stop = new AbortController();
      onSignals({
        signals: ['SIGINT', 'SIGTERM'],
        sameWithinMs: 0,
        clock: io.clock,
        source: io.signals,
        onFirst: (signal) => stop.abort(signal),
        onSecond: () => {},
      });
      const progress = new Progress(io);
      const examined = await collectDiagnostics(flags, io, {
        bandwidth: flags.bandwidth,
        signal: stop.signal,
        onBegin: (id, done, total) => flags.json !== true && progress.show(id, done, total),
      });
      progress.clear();
      const { server, diagnosis } = examined;
      const about = { server: server ?? 'the edge', isStopped: stop.signal.aborted };
      if (flags.json === true) io.stdout.write(`${JSON.stringify(examinedFields(examined))}\n`);
      else io.stdout.write(diagnosisText(diagnosis, about, io));
      if (stop.signal.aborted) finish(exitCodeOfSignal(stop.signal.reason as NodeJS.Signals));
      else finish(diagnosis.ok ? EXIT.endedAsAsked : EXIT.unexpected);
    });

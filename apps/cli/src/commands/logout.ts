// `tunnel logout`: ends the session at the platform, and forgets it here in any case.
import { Fault } from '@tunnel/errors';
import { Command } from 'commander';
import { EXIT, type ExitCode, exitCodeOf } from '../exit-codes.ts';
import type { Io } from '../io.ts';
import { checkPlace, platformClient } from '../platform/platform-address.ts';
import { type SavedSession, SessionFile } from '../platform/session-file.ts';
import { oneLine } from '../problem-report.ts';

export const logoutCommand = (io: Io, finish: (code: ExitCode) => void): Command =>
  new Command('logout')
    .description('end the session that `tunnel login` began')
    .addHelpText('after', '\nExample:\n  $ tunnel logout')
    .action(async () => {
      const file = new SessionFile(io);
      // Also what is no session any more may hold a token.
      const ended = file.exists() ? await file.exclusively(() => endSession(file)) : null;
      if (ended === null) {
        io.stdout.write('not logged in\n');
        return finish(EXIT.endedAsAsked);
      }
      const { session, problem } = ended;
      if (problem === null) {
        io.stdout.write(`logged out at ${session.place.url}\n`);
        return finish(EXIT.endedAsAsked);
      }
      io.stderr.write(
        `tunnel: logged out here, but the platform was not told: ${oneLine(problem.message)}\n  Its side of the session ends by itself after 30 days without use.\n`,
      );
      finish(exitCodeOf(problem));
    });

interface Ended {
  readonly session: SavedSession;
  /** Why the platform does not know. */
  readonly problem: Fault | null;
}

const endSession = async (file: SessionFile): Promise<Ended | null> => {
  const session = file.read();
  file.remove();
  if (session === null) return null;
  try {
    await platformClient(checkPlace(session.place)).logOut(session.refreshToken);
    return { session, problem: null };
  } catch (error) {
    return { session, problem: Fault.from(error) };
  }
};

// The page that a browser gets at /install: one command for each kind of computer.
import { escapeHtml, makePage, type Page } from '../pages/pages.ts';
import { type InstallScript, loginCommand, powershellCommand, shellCommand } from './install-script.rules.ts';

export interface InstallOffer extends InstallScript {
  /** Name of the npm tarball below /downloads/. Null: the release has none. */
  readonly tarball: string | null;
  /** Whether the release has executables for macOS or Linux. */
  readonly hasPosix: boolean;
  readonly hasWindows: boolean;
}

const command = (heading: string, text: string): string => `<h2>${heading}</h2>\n<pre>${escapeHtml(text)}</pre>`;

export const installPage = (offer: InstallOffer): Page => {
  const { platform, version, problem, tarball, hasPosix, hasWindows } = offer;
  if (problem !== null) return makePage('Install the client', `<p>${escapeHtml(problem)}</p>`);
  const parts = [
    ...(hasPosix ? [command('macOS and Linux', shellCommand(platform))] : []),
    ...(hasWindows ? [command('Windows, in PowerShell', powershellCommand(platform))] : []),
    ...(tarball === null
      ? []
      : [command('Any computer with Node.js', `npm install -g ${platform}/downloads/${tarball}`)]),
    command('Then sign in', loginCommand(platform)),
  ];
  return makePage(
    'Install the client',
    `<p>Installs the command tunnel, version ${escapeHtml(version)}, from this server.</p>
${parts.join('\n')}
<p><a href="downloads/SHA256SUMS">Checksums of all files</a></p>`,
  );
};

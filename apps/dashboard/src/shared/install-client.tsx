// Instructions to install the client, shown next to commands that require the client.
import { CommandLine } from '../ui/empty-state.tsx';
import { INSTALL_COMMAND } from './client-commands.ts';

export const InstallClient = () => (
  <div className="text-left text-muted text-sm">
    <p className="mb-1.5">
      New computer? Install the <code className="font-mono">tunnel</code> command first. Run this in a checkout of
      Hatchway:
    </p>
    <CommandLine command={INSTALL_COMMAND} label="Copy the install command" />
  </div>
);

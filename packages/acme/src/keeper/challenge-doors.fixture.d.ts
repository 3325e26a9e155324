import type { CertificateStore } from './certificate-store.ts';
export interface ChallengeDoors {
    readonly httpPort: number;
    readonly tlsPort: number;
    /** Where answers are looked up; null: nothing is answered. */
    store: CertificateStore | null;
    /** As where somebody else ends the handshakes. */
    closeTls(): Promise<void>;
    close(): Promise<void>;
}
export declare const openChallengeDoors: () => Promise<ChallengeDoors>;

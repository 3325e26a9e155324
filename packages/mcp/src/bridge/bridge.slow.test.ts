import { describeBridge } from './bridge.conformance.ts';
import { handWrittenServer, sdkServer } from './stdio-servers.fixture.ts';

describeBridge('of 2025-06-18, written by hand', handWrittenServer(), 'by-hand');
describeBridge('on the SDK of 2026', sdkServer(), 'on-sdk');

export { freePort, freePorts } from '../../lab/ports.ts';

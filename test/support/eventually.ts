export { eventually } from '../../lab/eventually.ts';

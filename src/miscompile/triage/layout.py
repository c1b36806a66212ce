"""Layout of Python expressions, as scripts of findings use it."""

from miscompile.instances.layout import WIDTH as WIDTH
from miscompile.instances.layout import Expression as Expression
from miscompile.instances.layout import Group as Group
from miscompile.instances.layout import Keyed as Keyed
from miscompile.instances.layout import array as array
from miscompile.instances.layout import assign as assign
from miscompile.instances.layout import call as call
from miscompile.instances.layout import lay_out as lay_out
from miscompile.instances.layout import quoted as quoted

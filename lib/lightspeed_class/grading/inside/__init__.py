"""What runs inside the sandbox beside student.py. It is copied there as plain modules, without the
package around it, and holds no answers.
"""
